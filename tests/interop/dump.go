package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"sync"
)

// dumpLine describes one access unit that the origin sent.
type dumpLine struct {
	Track  string `json:"track"`
	N      int64  `json:"n"`
	TS     uint32 `json:"ts"`
	NTP    int64  `json:"ntp"`
	SHA256 string `json:"sha256"`
}

func hashVideo(nalus [][]byte) string {
	h := sha256.New()
	for _, n := range nalus {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(n)))
		h.Write(size[:])
		h.Write(n)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashAudio(au []byte) string {
	sum := sha256.Sum256(au)
	return hex.EncodeToString(sum[:])
}

// dumper writes each line with one write call, so that a killed origin leaves
// at most its last line incomplete.
type dumper struct {
	mu sync.Mutex
	f  *os.File
}

func newDumper(path string) (*dumper, error) {
	if path == "" {
		return &dumper{}, nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &dumper{f: f}, err
}

func (d *dumper) write(l dumpLine) error {
	if d.f == nil {
		return nil
	}
	buf, err := json.Marshal(l)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err = d.f.Write(append(buf, '\n'))
	return err
}

// readDump returns the lines of each track in sending order.
func readDump(path string) (map[string][]dumpLine, error) {
	buf, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string][]dumpLine{}
	for _, raw := range bytes.Split(buf, []byte{'\n'}) {
		var l dumpLine
		if json.Unmarshal(raw, &l) == nil {
			out[l.Track] = append(out[l.Track], l)
		}
	}
	return out, nil
}
