//go:build !race

package httpout

const underRace = false
