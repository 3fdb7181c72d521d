//go:build linux

package main

import (
	"fmt"
	"strings"
)

// benchCase is one load. Load cases measure CPU and memory under a steady
// stream; join cases measure the time that a client waits.
type benchCase struct {
	Name    string
	Sources int
	Mbps    float64 // payload rate of each source
	Clients int     // client i asks for source i mod Sources
	Join    bool    `json:",omitempty"`
	RTSPIn  bool    `json:",omitempty"` // sources are RTSP streams over TCP, for the programs that take them
	WaitRAP bool    `json:",omitempty"` // join cases: wait for a random-access point, not just a byte
	RTSP    bool    `json:",omitempty"` // over RTSP, from the programs that have it; the others serve the same load over HTTP
}

// publishedCases is how many of cases are those of the published comparison of
// rtp2httpd, msd_lite, udpxy and TVGate; they are the default.
const publishedCases = 4

var cases = []benchCase{
	{Name: "distinct8", Sources: 8, Mbps: 40, Clients: 8},
	{Name: "shared8", Sources: 1, Mbps: 40, Clients: 8},
	{Name: "shared64", Sources: 1, Mbps: 20, Clients: 64},
	{Name: "high400", Sources: 1, Mbps: 400, Clients: 1},
	// Wider ones.
	{Name: "shared512", Sources: 1, Mbps: 4, Clients: 512},
	{Name: "shared500", Sources: 1, Mbps: 8, Clients: 500},
	{Name: "rtsp500", Sources: 1, Mbps: 8, Clients: 500, RTSP: true},
	{Name: "distinct64", Sources: 64, Mbps: 8, Clients: 64},
	{Name: "rtsp64", Sources: 64, Mbps: 8, Clients: 64, RTSPIn: true},
	// Waiting times.
	{Name: "join-latency", Sources: 8, Mbps: 8, Join: true},
	{Name: "zap", Sources: 8, Mbps: 10, Join: true, WaitRAP: true},
}

// parseCases reads a comma-separated list of case names, or "all".
func parseCases(names string) ([]benchCase, error) {
	if names == "all" {
		return cases, nil
	}
	var found []benchCase
	for name := range strings.SplitSeq(names, ",") {
		c, err := findCase(name)
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	return found, nil
}

func findCase(name string) (benchCase, error) {
	for _, c := range cases {
		if c.Name == name {
			return c, nil
		}
	}
	return benchCase{}, fmt.Errorf("no case named %q", name)
}

// title says what the case's load is.
func (c benchCase) title() string {
	count := func(n int, noun string) string {
		if n != 1 {
			noun += "s"
		}
		return fmt.Sprintf("%d %s", n, noun)
	}
	clients := count(c.Clients, "client")
	if c.Join {
		clients = "one request at a time"
	}
	if c.RTSP {
		clients += " over RTSP"
	}
	noun := "source"
	if c.RTSPIn {
		noun = "RTSP source"
	}
	return fmt.Sprintf("%s: %s x %g Mbit/s, %s", c.Name, count(c.Sources, noun), c.Mbps, clients)
}

// groupOf is the multicast group of source i. All sources share one port, as
// channels of a real network often do, so that a server which does not filter
// by group is found out.
const groupPort = 5004

func groupOf(i int) string {
	return fmt.Sprintf("239.77.%d.%d", i/250, i%250+1)
}
