//go:build !race

package simulator_test

const raceDetector = false
