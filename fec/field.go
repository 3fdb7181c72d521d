package fec

import "github.com/klauspost/reedsolomon"

// Arithmetic in GF(2^8) with the polynomial x^8+x^4+x^3+x^2+1, which both
// dialects of the operators use. Addition and subtraction are XOR.
const polynomial = 0x11d

// The powers of the generator 2, twice in a row, so that sums of two exponents
// need no remainder, and the exponents of all elements but 0.
var powers, exponents = func() (powers [2 * 255]byte, exponents [256]int) {
	x := 1
	for n := range 255 {
		powers[n], powers[n+255] = byte(x), byte(x)
		exponents[x] = n
		if x <<= 1; x > 0xff {
			x ^= polynomial
		}
	}
	return powers, exponents
}()

func mul(a, b byte) byte {
	if a == 0 || b == 0 {
		return 0
	}
	return powers[exponents[a]+exponents[b]]
}

// inverse of a, which is not 0.
func inverse(a byte) byte { return powers[255-exponents[a]] }

var kernel reedsolomon.LowLevel

// addMul adds c times in to the first bytes of out, which is as long as in at
// least.
func addMul(c byte, in, out []byte) {
	if c != 0 && len(in) > 0 {
		kernel.GalMulSliceXor(c, in, out[:len(in)])
	}
}

// invert turns the n × n matrix a, row by row, into its inverse. It reports
// false for a singular one, and leaves it in pieces.
func invert(a, inv []byte, n int) bool {
	clear(inv[:n*n])
	for i := range n {
		inv[i*n+i] = 1
	}
	for col := range n {
		pivot := col
		for pivot < n && a[pivot*n+col] == 0 {
			pivot++
		}
		if pivot == n {
			return false
		}
		if pivot != col {
			for i := range n {
				a[pivot*n+i], a[col*n+i] = a[col*n+i], a[pivot*n+i]
				inv[pivot*n+i], inv[col*n+i] = inv[col*n+i], inv[pivot*n+i]
			}
		}
		scale := inverse(a[col*n+col])
		for i := range n {
			a[col*n+i] = mul(a[col*n+i], scale)
			inv[col*n+i] = mul(inv[col*n+i], scale)
		}
		for row := range n {
			factor := a[row*n+col]
			if row == col || factor == 0 {
				continue
			}
			for i := range n {
				a[row*n+i] ^= mul(factor, a[col*n+i])
				inv[row*n+i] ^= mul(factor, inv[col*n+i])
			}
		}
	}
	return true
}
