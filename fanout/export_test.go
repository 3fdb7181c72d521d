package fanout

// RadioTables returns a PAT and a PMT with nothing but audio, on a PID that the
// packets of ingesttest.TS do not have.
func RadioTables() []byte {
	s := &testStream{size: 1}
	return s.packets(2)
}
