package playout

// queue holds datagrams between the line and the socket, first in, first out.
// Its buffers are used again and again.
type queue struct {
	ring  []datagram // buffers of maxDatagram bytes, some of them in use
	first int
	len   int
}

// push copies d to the end.
func (q *queue) push(d datagram) {
	if q.len == len(q.ring) {
		q.grow()
	}
	slot := &q.ring[(q.first+q.len)%len(q.ring)]
	slot.data = append(slot.data[:0], d.data...)
	slot.due, slot.shift = d.due, d.shift
	q.len++
}

// peek returns the i-th datagram, valid until it is dropped.
func (q *queue) peek(i int) datagram { return q.ring[(q.first+i)%len(q.ring)] }

// drop removes the first n datagrams.
func (q *queue) drop(n int) {
	q.first = (q.first + n) % len(q.ring)
	q.len -= n
}

func (q *queue) grow() {
	grown := make([]datagram, max(batchSize, 2*len(q.ring)))
	for i := range grown {
		if i < q.len {
			grown[i] = q.peek(i)
		} else {
			grown[i].data = make([]byte, 0, maxDatagram)
		}
	}
	q.ring, q.first = grown, 0
}
