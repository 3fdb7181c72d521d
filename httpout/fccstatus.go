package httpout

import (
	"time"

	"zapcast/ingest"
)

// fccJSON is how a channel with fast channel change began.
type fccJSON struct {
	Start          string   `json:"start"`
	Reason         string   `json:"reason"`
	Server         string   `json:"server"`
	Asked          string   `json:"asked"`
	Dialect        string   `json:"dialect"`
	State          string   `json:"state"`
	ReplyMS        *float64 `json:"reply_ms"`
	FirstByteMS    *float64 `json:"first_byte_ms"`
	RandomAccessMS *float64 `json:"random_access_ms"`
	HandOverMS     *float64 `json:"hand_over_ms"`
	BurstPackets   int64    `json:"burst_packets"`
	BurstBytes     int64    `json:"burst_bytes"`
	HeldBytes      int      `json:"held_bytes"`
	HeldPeakBytes  int      `json:"held_peak_bytes"`
}

func fccStatus(s *ingest.FCCStatus) *fccJSON {
	if s == nil {
		return nil
	}
	ms := func(d time.Duration) *float64 { return milliseconds(d, d > 0) }
	return &fccJSON{
		Start: s.Kind, Reason: s.Reason, Server: s.Server, Asked: s.Asked, Dialect: s.Dialect, State: s.State,
		ReplyMS: ms(s.ReplyTime), FirstByteMS: ms(s.FirstByte), RandomAccessMS: ms(s.RandomAccess), HandOverMS: ms(s.HandOver),
		BurstPackets: s.BurstPackets, BurstBytes: s.BurstBytes, HeldBytes: s.HeldBytes, HeldPeakBytes: s.HeldPeak,
	}
}

// fccServerJSON is what was learned of a server of fast channel change.
type fccServerJSON struct {
	Server  string   `json:"server"`
	Dialect string   `json:"dialect"`
	ReplyMS *float64 `json:"reply_ms"`
	Works   bool     `json:"works"`
	Reason  string   `json:"reason"`
	Open    int      `json:"open"`
	Asked   int64    `json:"asked"`
	Bursts  int64    `json:"bursts"`
	AgeMS   float64  `json:"age_ms"`
}

func (s *Server) fccServers(now time.Time) []fccServerJSON {
	out := []fccServerJSON{}
	for _, known := range s.tuner.FCCServers(now) {
		out = append(out, fccServerJSON{
			Server: known.Server.String(), Dialect: known.Dialect, ReplyMS: milliseconds(known.Reply, known.Reply > 0),
			Works: known.Works, Reason: known.Reason, Open: known.Open, Asked: known.Asked, Bursts: known.Bursts,
			AgeMS: *milliseconds(known.Age, true),
		})
	}
	return out
}
