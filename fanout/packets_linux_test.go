package fanout

// setSegments makes c send one way or the other; false: it cannot.
func setSegments(c *udpConn, on bool) bool {
	if !on {
		c.segments = 0
	}
	return on == (c.segments > 0)
}
