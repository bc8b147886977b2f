// Package registration shows what a program sees of a registration, PersistentNode and
// GroupMember, and of a group that it watches. It consists of tests.
package registration
