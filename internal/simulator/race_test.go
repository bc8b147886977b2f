//go:build race

package simulator_test

const raceDetector = true
