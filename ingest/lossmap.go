package ingest

import "time"

// Via says by which way a packet came into a window.
type Via uint8

// The ways. All but the first bring packets that the stream has lost.
const (
	ViaStream      Via = iota // as part of the stream; into a hole: late
	ViaReedSolomon            // computed from the operator's parity
	ViaRow                    // computed from a row of SMPTE 2022-1
	ViaColumn                 // computed from a column of SMPTE 2022-1
	ViaRetransmission
	ViaBurst // from a burst by unicast at the beginning; that it comes twice is no loss
	vias     = iota
)

// repairs reports whether a packet comes this way because it was missed.
func (v Via) repairs() bool { return v != ViaStream && v != ViaBurst }

// A LossMap says what a stream has missed, when, and what has brought it back.
type LossMap struct {
	Reordered     int64 // came late by themselves
	ReedSolomon   int64 // the ways of repair
	Row           int64
	Column        int64
	Retransmitted int64
	Burst         int64
	Lost          int64 // nothing brought them back
	Late          int64 // brought back after they had been given up; not sent

	// Bursts counts runs of numbers in succession that did not come by
	// themselves, by their length.
	Bursts []LossBurst

	// Minutes are those of the last hour in which something was missed.
	Minutes []LossMinute

	// MeanWait and MaxWait are how long what was repaired was waited for.
	MeanWait, MaxWait time.Duration
}

// LossBurst counts the runs whose length is between two bounds.
type LossBurst struct {
	Least, Most    int // Most 0: any length
	Count          int64
	Repaired, Lost int64 // numbers in them
}

// LossMinute is one minute in which something was missed.
type LossMinute struct {
	Start          time.Time
	Repaired, Lost int64
}

// burstBounds are the lengths at which classes of bursts begin. A decoder hides
// one packet; codes of operators repair 3 to 5 of a group.
var burstBounds = [...]int{1, 2, 3, 4, 6, 11, 21, 51, 101}

const lossMinutes = 60

// losses is a LossMap in the making.
type losses struct {
	repaired [vias]int64 // [ViaStream]: reordered
	late     int64
	lost     int64
	waited   time.Duration
	longest  time.Duration

	run     lossRun // the last one; it may go on
	bursts  [len(burstBounds)]LossBurst
	minutes [lossMinutes]lossMinute
}

type lossRun struct {
	end            uint16
	repaired, lost int64
}

type lossMinute struct {
	number         int64 // since the window's epoch, from 1 on
	repaired, lost int64
}

// filled counts a hole that a packet has filled.
func (l *losses) filled(via Via, waited time.Duration) {
	l.repaired[via]++
	if via != ViaStream {
		l.waited += waited
		l.longest = max(l.longest, waited)
	}
}

// missed counts n numbers from seq on that leave the window and had not come by
// themselves.
func (l *losses) missed(seq uint16, n int, lost bool, at time.Duration) {
	if n == 0 {
		return
	}
	if seq != l.run.end || l.run.repaired+l.run.lost == 0 {
		l.close(&l.bursts)
		l.run = lossRun{end: seq}
	}
	l.run.end += uint16(n)
	number := int64(at/time.Minute) + 1
	minute := &l.minutes[number%lossMinutes]
	if minute.number != number {
		*minute = lossMinute{number: number}
	}
	if lost {
		l.lost += int64(n)
		l.run.lost += int64(n)
		minute.lost += int64(n)
	} else {
		l.run.repaired += int64(n)
		minute.repaired += int64(n)
	}
}

// close counts the run at hand among bursts.
func (l *losses) close(bursts *[len(burstBounds)]LossBurst) {
	length := l.run.repaired + l.run.lost
	if length == 0 {
		return
	}
	class := 0
	for class+1 < len(burstBounds) && length >= int64(burstBounds[class+1]) {
		class++
	}
	b := &bursts[class]
	b.Count++
	b.Repaired += l.run.repaired
	b.Lost += l.run.lost
}

func (l *losses) snapshot(epoch time.Time, at time.Duration) LossMap {
	m := LossMap{
		Reordered:     l.repaired[ViaStream],
		ReedSolomon:   l.repaired[ViaReedSolomon],
		Row:           l.repaired[ViaRow],
		Column:        l.repaired[ViaColumn],
		Retransmitted: l.repaired[ViaRetransmission],
		Burst:         l.repaired[ViaBurst],
		Lost:          l.lost,
		Late:          l.late,
		MaxWait:       l.longest,
	}
	if n := m.ReedSolomon + m.Row + m.Column + m.Retransmitted + m.Burst; n > 0 {
		m.MeanWait = l.waited / time.Duration(n)
	}
	bursts := l.bursts
	l.close(&bursts)
	for i, b := range bursts {
		if b.Count == 0 {
			continue
		}
		b.Least = burstBounds[i]
		if i+1 < len(burstBounds) {
			b.Most = burstBounds[i+1] - 1
		}
		m.Bursts = append(m.Bursts, b)
	}
	newest := int64(at/time.Minute) + 1
	for number := max(1, newest-lossMinutes+1); number <= newest; number++ {
		if minute := l.minutes[number%lossMinutes]; minute.number == number {
			m.Minutes = append(m.Minutes, LossMinute{
				Start: epoch.Add(time.Duration(number-1) * time.Minute), Repaired: minute.repaired, Lost: minute.lost,
			})
		}
	}
	return m
}
