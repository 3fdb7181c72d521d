package httpout

import (
	"time"

	"zapcast/ingest"
)

// lossJSON is the loss map of a channel: what was missed, when, and what has
// brought it back.
type lossJSON struct {
	Reordered     int64 `json:"reordered"`
	ReedSolomon   int64 `json:"reed_solomon"`
	Row           int64 `json:"row"`
	Column        int64 `json:"column"`
	Retransmitted int64 `json:"retransmitted"`
	Burst         int64 `json:"fcc_burst"`
	Unrepaired    int64 `json:"unrepaired"`
	Late          int64 `json:"late"`

	WaitMeanMS *float64 `json:"wait_mean_ms"`
	WaitMaxMS  *float64 `json:"wait_max_ms"`

	Bursts  []lossBurstJSON  `json:"bursts"`
	Minutes []lossMinuteJSON `json:"minutes"`
}

type lossBurstJSON struct {
	Least      int   `json:"length_from"`
	Most       int   `json:"length_to"`
	Count      int64 `json:"count"`
	Repaired   int64 `json:"repaired"`
	Unrepaired int64 `json:"unrepaired"`
}

type lossMinuteJSON struct {
	Start      time.Time `json:"start"`
	Repaired   int64     `json:"repaired"`
	Unrepaired int64     `json:"unrepaired"`
}

type repairJSON struct {
	Code      string   `json:"code"`
	Where     string   `json:"where"`
	State     string   `json:"state"`
	Useless   bool     `json:"useless"`
	LatencyMS *float64 `json:"latency_ms"`
	Parity    int64    `json:"parity"`
	Unused    int64    `json:"unused"`
	Foreign   int64    `json:"foreign"`
	Failed    int64    `json:"failed"`
}

func lossStatus(m ingest.LossMap) lossJSON {
	repaired := m.ReedSolomon+m.Row+m.Column+m.Retransmitted+m.Burst > 0
	out := lossJSON{
		Reordered: m.Reordered, ReedSolomon: m.ReedSolomon, Row: m.Row, Column: m.Column,
		Retransmitted: m.Retransmitted, Burst: m.Burst, Unrepaired: m.Lost, Late: m.Late,
		WaitMeanMS: milliseconds(m.MeanWait, repaired), WaitMaxMS: milliseconds(m.MaxWait, repaired),
		Bursts: []lossBurstJSON{}, Minutes: []lossMinuteJSON{},
	}
	for _, b := range m.Bursts {
		out.Bursts = append(out.Bursts, lossBurstJSON{b.Least, b.Most, b.Count, b.Repaired, b.Lost})
	}
	for _, m := range m.Minutes {
		out.Minutes = append(out.Minutes, lossMinuteJSON{m.Start.UTC(), m.Repaired, m.Lost})
	}
	return out
}

func repairStatus(r *ingest.RepairStatus) *repairJSON {
	if r == nil {
		return nil
	}
	return &repairJSON{
		Code: r.Code, Where: r.Where, State: r.State, Useless: r.Useless, LatencyMS: milliseconds(r.Latency, true),
		Parity: r.Parity, Unused: r.Unused, Foreign: r.Foreign, Failed: r.Failed,
	}
}
