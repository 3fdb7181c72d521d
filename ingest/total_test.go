package ingest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStatus_addCounters(t *testing.T) {
	s := Status{Source: "a", Lost: 1, Bytes: 2, ReceiveBuffer: 3}
	s.Losses = LossMap{Row: 1, MaxWait: 5}
	s.AddCounters(&Status{Source: "b", Losses: LossMap{Row: 2, Late: 3, MaxWait: 9}, Lost: 10, Bytes: 20, Overflow: 30, ReceiveBuffer: 40, LastData: time.Unix(1, 0)})
	if diff := cmp.Diff(Status{Source: "a", Losses: LossMap{Row: 3, Late: 3, MaxWait: 5}, Lost: 11, Bytes: 22, Overflow: 30, ReceiveBuffer: 3}, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFCCStatus_outcome(t *testing.T) {
	for want, f := range map[string]FCCStatus{
		"pending": {}, "none": {Kind: StartMulticast, Reason: "no answer"},
		"burst": {Kind: StartBurst}, "broken": {Kind: StartBurst, Reason: "fell silent"},
	} {
		if got := f.Outcome(); got != want {
			t.Errorf("%+v: got %s, want %s", f, got, want)
		}
	}
}
