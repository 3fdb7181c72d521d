package fec

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/klauspost/reedsolomon"
)

func fromHex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func counting(from byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = from + byte(i)
	}
	return b
}

// The coefficients of the matrices in docs/repair.md.
func TestCode_coefficients(t *testing.T) {
	for _, want := range []struct {
		k, m    int
		dialect Dialect
		row     int
		begins  string
		ends    string
	}{
		{4, 2, Integer, 0, "1b1c1214", ""},
		{4, 2, Integer, 1, "1c1b1412", ""},
		{4, 2, Alpha, 0, "4078360f", ""},
		{4, 2, Alpha, 1, "e7d25763", ""},
		{100, 5, Integer, 0, "208589dfd065b2f4", "1214"},
		{100, 5, Integer, 1, "8520df8965d0f4b2", "1412"},
		{100, 5, Integer, 2, "89df2085b2f4d065", "1b1c"},
		{100, 5, Integer, 3, "df898520f4b265d0", "1c1b"},
		{100, 5, Integer, 4, "3c66a811ccfa416f", "c4d8"},
		{100, 5, Alpha, 0, "1a2c1a4bf641d3f0", "07fb"},
		{48, 3, Alpha, 0, "d04e3563056b9071e8410b84e48375a3953b55e25368a762e6a9ce452d7cc59fa1ab6f2c4435dfd88fb99ab22ec8033d", ""},
		{48, 3, Alpha, 1, "e750837aaabf7752672ef3149348b52a7623fecca9aec3d50f36c2fc8ad3a59fba0be59d238994cd75a82a0f3acb8f3b", ""},
		{48, 3, Alpha, 2, "3dde239bad77e48e0e3aa6d361125d07a65a05117039f0e0d60ec373dd61ae9a5bcd3aff1750d06c65e3403463558639", ""},
	} {
		got := hex.EncodeToString(newCode(want.k, want.m, want.dialect).row(want.row))
		if !strings.HasPrefix(got, want.begins) || !strings.HasSuffix(got, want.ends) {
			t.Errorf("%d+%d %v, row %d: got %s, want %s…%s", want.k, want.m, want.dialect, want.row, got, want.begins, want.ends)
		}
	}
}

// One byte position of captured groups: all data, then what the parity has there.
func TestCode_capturedBytes(t *testing.T) {
	for _, v := range []struct {
		name    string
		dialect Dialect
		data    []byte
		parity  string
	}{
		{"integer, byte 3", Integer, counting(0xd9, 100), "4fe1fb98c7"},
		{"integer, byte 700", Integer, fromHex(t, "220d4a5a9fc0a0a6beb7dccdeb0a4b103490ff0bea9153d8c358d4f30e31c1114bc49186551d388cd171d509d68f854d7e5b35ffffb1228b425a04b41bc377bc563d009b74798fe5687d64f95f4e8ce8975a8a121008f3e80567752b0547849b9a8611f2"), "63cc6814cb"},
		{"alpha, byte 3", Alpha, counting(0xd1, 48), "b042d5"},
		{"alpha, byte 700", Alpha, fromHex(t, "a7dfcb5e62d8708a9e73da83a9d9d35046435a72410ba0cb45ff97e708e2ba3d44a315ffab3f866e9c8345e536a8a31c"), "651d91"},
	} {
		want := fromHex(t, v.parity)
		c := newCode(len(v.data), len(want), v.dialect)
		for i := range want {
			var got byte
			for j, b := range v.data {
				got ^= mul(c.row(i)[j], b)
			}
			if got != want[i] {
				t.Errorf("%s: parity %d: got %02x, want %02x", v.name, i, got, want[i])
			}
		}
	}
}

// The integer dialect is the library's default matrix, for every k and m.
func TestCode_integerIsTheLibrarysDefault(t *testing.T) {
	for k := 1; k < 256; k += 1 + k/3 {
		for _, m := range []int{1, 2, 5, 17, 256 - k} {
			if !Integer.Valid(k, m) {
				continue
			}
			library, err := reedsolomon.New(k, m)
			if err != nil {
				t.Fatal(err)
			}
			shards := make([][]byte, k+m)
			for i := range shards {
				shards[i] = []byte{byte(i*37 + k), byte(i * i)}
			}
			if err := library.Encode(shards); err != nil {
				t.Fatal(err)
			}
			c := newCode(k, m, Integer)
			for i := range m {
				got := make([]byte, 2)
				for j := range k {
					addMul(c.row(i)[j], shards[j], got)
				}
				if string(got) != string(shards[k+i]) {
					t.Fatalf("%d+%d, row %d: got % x, want % x", k, m, i, got, shards[k+i])
				}
			}
		}
	}
}
