package httpout

import (
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"

	"zapcast/access"
	"zapcast/fanout"
	"zapcast/ingest"
	"zapcast/tune"
)

// The structs below are the JSON of /api/status. docs/status.md says what each
// field is; a test keeps the two in step.

type statusJSON struct {
	Process  processJSON     `json:"process"`
	Refused  refusedJSON     `json:"refused"`
	Memory   memoryJSON      `json:"stream_memory"`
	Receive  receiveJSON     `json:"receive"`
	Channels []channelJSON   `json:"channels"`
	Viewers  []viewerJSON    `json:"viewers"`
	FCC      []fccServerJSON `json:"fcc_servers"`
	Zaps     []zapsJSON      `json:"zaps"`
	Failures []failure       `json:"failures"`
	Warnings []string        `json:"warnings"`

	Playlists []playlistJSON `json:"playlists"`
}

type processJSON struct {
	Version        string  `json:"version"`
	UptimeSeconds  float64 `json:"uptime_seconds"`
	PID            int     `json:"pid"`
	Processors     int     `json:"gomaxprocs"`
	Loops          int     `json:"loops"`
	Sharing        bool    `json:"sharing"`
	Goroutines     int     `json:"goroutines"`
	OpenFiles      int     `json:"open_files,omitempty"`
	CPUSeconds     float64 `json:"cpu_seconds,omitempty"`
	HeapBytes      int64   `json:"heap_bytes"`
	ResidentBytes  int64   `json:"resident_bytes,omitempty"`
	PendingClients int     `json:"pending_connections"`
}

type refusedJSON struct {
	MaxClients int64 `json:"max_clients"`
	Pending    int64 `json:"pending_connections"`
	NoStream   int64 `json:"no_stream"`
	Gone       int64 `json:"gone"`
	BadRequest int64 `json:"bad_request"`
	NotFound   int64 `json:"not_found"`
	Method     int64 `json:"method"`
	TooLarge   int64 `json:"too_large"`
	Denied     int64 `json:"denied"`
}

type memoryJSON struct {
	Bytes       int64 `json:"bytes"`
	BudgetBytes int64 `json:"budget_bytes"`
}

type receiveJSON struct {
	How    string     `json:"how"`
	Reason string     `json:"reason"`
	Rings  []ringJSON `json:"rings"`
	Faults []string   `json:"faults"`
}

type ringJSON struct {
	Loop         int    `json:"loop"`
	Interface    string `json:"interface"`
	Family       string `json:"family"`
	Bytes        int    `json:"bytes"`
	Frames       int    `json:"frames"`
	Flows        int    `json:"flows"`
	Filter       string `json:"filter"`
	Packets      int64  `json:"packets"`
	Drops        int64  `json:"drops"`
	Unclaimed    int64  `json:"unclaimed"`
	Malformed    int64  `json:"malformed"`
	BadChecksums int64  `json:"bad_checksums"`
	Reassembled  int64  `json:"reassembled"`
}

type channelJSON struct {
	ID                 string      `json:"id"`
	Source             string      `json:"source"`
	Interface          string      `json:"interface"`
	Local              string      `json:"local"`
	Sender             string      `json:"sender"`
	State              string      `json:"state"`
	Since              time.Time   `json:"since"`
	Payload            string      `json:"payload"`
	Receive            string      `json:"receive"`
	Codec              string      `json:"codec"`
	Viewers            int         `json:"viewers"`
	Waiting            int         `json:"waiting"`
	BitRate            int64       `json:"bit_rate"`
	Datagrams          int64       `json:"datagrams"`
	Bytes              int64       `json:"bytes"`
	Packets            int64       `json:"packets"`
	Lost               int64       `json:"lost"`
	Reordered          int64       `json:"reordered"`
	Duplicates         int64       `json:"duplicates"`
	Resyncs            int64       `json:"resyncs"`
	Foreign            int64       `json:"foreign"`
	RTCP               int64       `json:"rtcp"`
	FEC                int64       `json:"fec"`
	Malformed          int64       `json:"malformed"`
	BadTS              int64       `json:"bad_ts"`
	Overflow           int64       `json:"overflow"`
	ReceiveBufferBytes int         `json:"receive_buffer_bytes"`
	HistoryBytes       int64       `json:"history_bytes"`
	RandomAccessAgeMS  *float64    `json:"last_random_access_age_ms"`
	DataAgeMS          *float64    `json:"last_data_age_ms"`
	Skips              int64       `json:"skips"`
	Blocks             int64       `json:"blocks"`
	Files              int64       `json:"files"`
	Seen               string      `json:"seen"`
	FCC                *fccJSON    `json:"fcc"`
	Losses             lossJSON    `json:"losses"`
	Repair             *repairJSON `json:"repair"`
	Warnings           []string    `json:"warnings"`
}

type viewerJSON struct {
	ID                  int64     `json:"id"`
	Address             string    `json:"address"`
	Agent               string    `json:"agent"`
	URL                 string    `json:"url"`
	Channel             string    `json:"channel"`
	Since               time.Time `json:"since"`
	Bytes               int64     `json:"bytes"`
	LagBytes            int64     `json:"lag_bytes"`
	LagMS               float64   `json:"lag_ms"`
	Start               string    `json:"start"`
	FirstByteMS         *float64  `json:"first_byte_ms"`
	FirstRandomAccessMS *float64  `json:"first_random_access_ms"`
	Blocked             bool      `json:"blocked"`
	Skips               int64     `json:"skips"`
}

// status answers /api/status.
func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	body, err := json.MarshalIndent(s.snapshot(time.Now()), "", "  ")
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", noCache)
	answer(s.config.Load(), w, r, http.StatusOK, "application/json", append(body, '\n'))
	return nil
}

// health answers /healthz.
func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	if s.ctx.Err() != nil {
		return tune.Refuse(http.StatusServiceUnavailable, "%v", errShuttingDown)
	}
	w.Header().Set("Cache-Control", noCache)
	answer(s.config.Load(), w, r, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
	return nil
}

func (s *Server) snapshot(now time.Time) statusJSON {
	engine := s.engine.Status()
	usage := processUsage()
	status := statusJSON{
		Process: processJSON{
			Version:        s.config.Load().Version,
			UptimeSeconds:  now.Sub(s.started).Seconds(),
			PID:            os.Getpid(),
			Processors:     runtime.GOMAXPROCS(0),
			Loops:          engine.Loops,
			Sharing:        engine.Sharing,
			Goroutines:     runtime.NumGoroutine(),
			OpenFiles:      usage.openFiles,
			CPUSeconds:     usage.cpu.Seconds(),
			HeapBytes:      heapBytes(),
			ResidentBytes:  usage.residentBytes,
			PendingClients: s.pending.count(),
		},
		Refused: refusedJSON{
			MaxClients: s.counters.limit.Load(),
			Pending:    s.counters.pending.Load(),
			NoStream:   s.counters.noStream.Load(),
			Gone:       s.counters.gone.Load(),
			BadRequest: s.counters.badRequest.Load(),
			NotFound:   s.counters.notFound.Load(),
			Method:     s.counters.method.Load(),
			TooLarge:   s.counters.tooLarge.Load(),
			Denied:     s.counters.denied.Load(),
		},
		Memory:    memoryJSON{Bytes: engine.MemoryBytes, BudgetBytes: engine.MemoryBudget},
		Receive:   receiveStatus(engine.Receivers),
		Channels:  make([]channelJSON, 0, len(engine.Channels)),
		Viewers:   make([]viewerJSON, 0, len(engine.Viewers)),
		Zaps:      s.config.Load().Metrics.status(),
		Failures:  s.failures.snapshot(),
		Warnings:  []string{},
		Playlists: s.playlists(),
		FCC:       s.fccServers(now),
	}
	for _, c := range engine.Channels {
		status.Channels = append(status.Channels, channelStatus(c, now))
		for _, warning := range c.Source.Warnings {
			if !slices.Contains(status.Warnings, warning) {
				status.Warnings = append(status.Warnings, warning)
			}
		}
	}
	for _, v := range engine.Viewers {
		status.Viewers = append(status.Viewers, viewerStatus(v))
	}
	return status
}

// receiveStatus joins what the loops' receivers say; all were made alike.
func receiveStatus(receivers []ingest.ReceiverStatus) receiveJSON {
	status := receiveJSON{Rings: []ringJSON{}, Faults: []string{}}
	for loop, r := range receivers {
		status.How, status.Reason = r.Receive, r.Reason
		for _, fault := range r.Faults {
			if !slices.Contains(status.Faults, fault) {
				status.Faults = append(status.Faults, fault)
			}
		}
		for _, ring := range r.Rings {
			status.Rings = append(status.Rings, ringJSON{
				Loop: loop, Interface: ring.Interface, Family: ring.Family, Bytes: ring.Bytes, Frames: ring.Frames, Flows: ring.Flows,
				Filter: ring.Filter, Packets: ring.Packets, Drops: ring.Drops, Unclaimed: ring.Unclaimed,
				Malformed: ring.Malformed, BadChecksums: ring.BadChecksums, Reassembled: ring.Reassembled,
			})
		}
	}
	return status
}

func channelStatus(c fanout.ChannelStatus, now time.Time) channelJSON {
	source := c.Source
	return channelJSON{
		ID:                 access.Redact(c.ID),
		Source:             access.Redact(source.Source),
		Interface:          source.Interface,
		Local:              source.Local,
		Sender:             source.Sender,
		State:              c.State,
		Since:              c.Since.UTC(),
		Payload:            source.Payload,
		Receive:            source.Receive,
		Codec:              c.Codec,
		Viewers:            c.Viewers,
		Waiting:            c.Waiting,
		BitRate:            c.BitRate,
		Datagrams:          source.Datagrams,
		Bytes:              source.Bytes,
		Packets:            source.Packets,
		Lost:               source.Lost,
		Reordered:          source.Reordered,
		Duplicates:         source.Duplicates,
		Resyncs:            source.Resyncs,
		Foreign:            source.Foreign,
		RTCP:               source.RTCP,
		FEC:                source.FEC,
		Malformed:          source.Malformed,
		BadTS:              source.BadTS,
		Overflow:           source.Overflow,
		ReceiveBufferBytes: source.ReceiveBuffer,
		HistoryBytes:       c.HistoryBytes,
		RandomAccessAgeMS:  milliseconds(c.LastRandomAccess, c.LastRandomAccess >= 0),
		DataAgeMS:          milliseconds(now.Sub(source.LastData), !source.LastData.IsZero()),
		Skips:              c.Skips,
		Blocks:             c.Blocks,
		Files:              c.Files,
		Seen:               access.Redact(c.Seen),
		FCC:                fccStatus(source.FCC),
		Losses:             lossStatus(source.Losses),
		Repair:             repairStatus(source.Repair),
		Warnings:           append([]string{}, source.Warnings...),
	}
}

func viewerStatus(v fanout.ViewerStatus) viewerJSON {
	return viewerJSON{
		ID:                  v.ID,
		Address:             v.Client,
		Agent:               v.Agent,
		URL:                 v.URL,
		Channel:             access.Redact(v.Channel),
		Since:               v.Since.UTC(),
		Bytes:               v.Bytes,
		LagBytes:            v.LagBytes,
		LagMS:               *milliseconds(v.Lag, true),
		Start:               v.Start,
		FirstByteMS:         milliseconds(v.FirstByte, v.FirstByte > 0),
		FirstRandomAccessMS: milliseconds(v.FirstRandomAccess, v.FirstRandomAccess > 0),
		Blocked:             v.Blocked,
		Skips:               v.Skips,
	}
}

// milliseconds returns d for JSON, or null where there is none.
func milliseconds(d time.Duration, known bool) *float64 {
	if !known {
		return nil
	}
	ms := float64(d.Microseconds()) / 1000
	return &ms
}
