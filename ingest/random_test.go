package ingest

import "math/rand/v2"

// random is a seeded source of everything that tests draw.
type random struct {
	*rand.Rand
	*rand.ChaCha8
}

func newRandom(seed byte) random {
	chacha := rand.NewChaCha8([32]byte{seed})
	return random{rand.New(chacha), chacha}
}
