//go:build race

package httpout

const underRace = true
