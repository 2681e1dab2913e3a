package main

// trackResult is a track as one reader saw it.
type trackResult struct {
	Packets    int   `json:"packets"`
	AUs        int   `json:"aus"`
	Lost       int   `json:"lost"`
	Reordered  int   `json:"reordered"`
	Duplicates int   `json:"duplicates"`
	SSRC       int64 `json:"ssrc"` // -1: none
	SSRCChange int   `json:"ssrc_changes"`
	TSBackward int   `json:"ts_backward"`
	DecodeErrs int   `json:"decode_errors"`
	MaxGapMS   int64 `json:"max_gap_ms"`
	Reports    int   `json:"sender_reports"`
	// Compared with the dump; see README.md.
	Matched     int   `json:"matched"`
	Mismatched  int   `json:"mismatched"`
	Jumps       int   `json:"jumps"`
	Skipped     int   `json:"skipped_aus"`
	TSDelta     int64 `json:"ts_delta"` // -1: none
	TSConstant  bool  `json:"ts_delta_constant"`
	NTPCompared int   `json:"ntp_compared"`
	NTPErrMaxUS int64 `json:"ntp_error_max_us"`
}

type readerResult struct {
	Reader         int                     `json:"reader"`
	Status         string                  `json:"status"`
	Error          string                  `json:"error,omitempty"`
	DisconnectedMS int64                   `json:"disconnected_ms"` // after PLAY; -1: not
	FirstPacketMS  int64                   `json:"first_packet_ms"` // after PLAY; -1: none
	AVErrMaxUS     int64                   `json:"av_offset_error_max_us"`
	OK             bool                    `json:"ok"`
	Tracks         map[string]*trackResult `json:"tracks"`
}

type totals struct {
	Readers       int            `json:"readers"`
	OK            int            `json:"ok"`
	Statuses      map[string]int `json:"statuses"`
	Packets       int            `json:"packets"`
	AUs           int            `json:"aus"`
	Lost          int            `json:"lost"`
	Reordered     int            `json:"reordered"`
	Duplicates    int            `json:"duplicates"`
	SSRCChange    int            `json:"ssrc_changes"`
	TSBackward    int            `json:"ts_backward"`
	DecodeErrs    int            `json:"decode_errors"`
	Matched       int            `json:"matched"`
	Mismatched    int            `json:"mismatched"`
	Jumps         int            `json:"jumps"`
	FirstPacketMS int64          `json:"first_packet_max_ms"`
	MaxGapMS      int64          `json:"max_gap_ms"`
	AudioNTPErr   int64          `json:"audio_ntp_error_max_us"`
	VideoNTPErr   int64          `json:"video_ntp_error_max_us"`
	AVErrMaxUS    int64          `json:"av_offset_error_max_us"`
}

// judge sets OK if every track of the SDP arrived complete.
func (r *readerResult) judge(o readOptions) {
	r.OK = r.Status == "ok" && len(r.Tracks) > 0
	for _, t := range r.Tracks {
		bad := t.Lost + t.Reordered + t.Duplicates + t.SSRCChange + t.TSBackward +
			t.DecodeErrs + t.Mismatched
		if !o.tolerateGaps {
			bad += t.Jumps
		}
		if bad != 0 || t.AUs < o.minAUs {
			r.OK = false
		}
	}
}

func sum(readers []*readerResult) totals {
	s := totals{Readers: len(readers), Statuses: map[string]int{}, FirstPacketMS: -1}
	for _, r := range readers {
		s.Statuses[r.Status]++
		if r.OK {
			s.OK++
		}
		s.FirstPacketMS = max(s.FirstPacketMS, r.FirstPacketMS)
		s.AVErrMaxUS = max(s.AVErrMaxUS, r.AVErrMaxUS)
		for name, t := range r.Tracks {
			s.Packets += t.Packets
			s.AUs += t.AUs
			s.Lost += t.Lost
			s.Reordered += t.Reordered
			s.Duplicates += t.Duplicates
			s.SSRCChange += t.SSRCChange
			s.TSBackward += t.TSBackward
			s.DecodeErrs += t.DecodeErrs
			s.Matched += t.Matched
			s.Mismatched += t.Mismatched
			s.Jumps += t.Jumps
			s.MaxGapMS = max(s.MaxGapMS, t.MaxGapMS)
			if name == "audio" {
				s.AudioNTPErr = max(s.AudioNTPErr, t.NTPErrMaxUS)
			} else {
				s.VideoNTPErr = max(s.VideoNTPErr, t.NTPErrMaxUS)
			}
		}
	}
	return s
}
