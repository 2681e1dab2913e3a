package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/bluenviron/gortsplib/v5/pkg/base"
)

type readOptions struct {
	transport, expect        string
	readers, minAUs, stagger int
	duration                 time.Duration
	json                     bool
	tolerateGaps, noTeardown bool
	interrupted              <-chan struct{}
}

func runRead(args []string) int {
	var o readOptions
	var seconds float64
	fs := flag.NewFlagSet("read", flag.ExitOnError)
	fs.StringVar(&o.transport, "transport", "tcp", "udp or tcp")
	fs.IntVar(&o.readers, "readers", 1, "number of clients")
	fs.Float64Var(&seconds, "duration", 5, "seconds to read, for each client from its PLAY; SIGINT ends it earlier")
	fs.IntVar(&o.stagger, "stagger", 0, "milliseconds between the starts of clients")
	fs.StringVar(&o.expect, "expect", "", "the origin's dump")
	fs.IntVar(&o.minAUs, "min-aus", 1, "access units needed in each track")
	fs.BoolVar(&o.json, "json", false, "print JSON")
	fs.BoolVar(&o.tolerateGaps, "tolerate-gaps", false, "allow jumps forward in the content")
	fs.BoolVar(&o.noTeardown, "no-teardown", false, "leave without TEARDOWN")
	fs.Parse(args) //nolint:errcheck // ExitOnError
	o.duration = time.Duration(seconds * float64(time.Second))

	if fs.NArg() != 1 || o.transport != "udp" && o.transport != "tcp" || o.readers < 1 {
		fmt.Fprintln(os.Stderr, "read: needs one URL, --transport udp|tcp and --readers >= 1")
		return 64
	}
	u, err := base.ParseURL(fs.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "read:", err)
		return 64
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	o.interrupted = ctx.Done()
	readers := readAll(o, u)
	if o.expect != "" {
		dump, err := readDump(o.expect)
		if err != nil {
			fmt.Fprintln(os.Stderr, "read:", err)
			return 1
		}
		compareAll(readers, dump)
	}
	return report(o, readers)
}

func readAll(o readOptions, u *base.URL) []*reader {
	readers := make([]*reader, o.readers)
	var wg sync.WaitGroup
	for i := range readers {
		r := newReader(i, o)
		readers[i] = r
		wg.Add(1)
		go func() {
			defer wg.Done()
			time.Sleep(time.Duration(i*o.stagger) * time.Millisecond)
			url := *u // the library keeps it
			r.run(&url)
		}()
	}
	wg.Wait()
	return readers
}

func report(o readOptions, readers []*reader) int {
	results := make([]*readerResult, len(readers))
	refused := false
	for i, r := range readers {
		r.res.judge(o)
		results[i] = r.res
		refused = refused || r.res.Status == "connect-failed" || strings.HasPrefix(r.res.Status, "status-")
	}
	all := sum(results)
	if o.json {
		json.NewEncoder(os.Stdout).Encode(map[string]any{"readers": results, "totals": all}) //nolint:errcheck
	} else {
		table(results, all)
	}
	switch {
	case refused:
		return 2
	case all.OK < all.Readers:
		return 1
	}
	return 0
}

func table(results []*readerResult, all totals) {
	for _, r := range results {
		fmt.Printf("reader %d: %s ok=%v first=%dms disconnected=%dms av-error=%dus error=%q\n",
			r.Reader, r.Status, r.OK, r.FirstPacketMS, r.DisconnectedMS, r.AVErrMaxUS, r.Error)
		names := make([]string, 0, len(r.Tracks))
		for name := range r.Tracks {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			t := r.Tracks[name]
			fmt.Printf("  %s packets=%d aus=%d lost=%d reordered=%d dup=%d matched=%d mismatched=%d jumps=%d gap=%dms ntp-error=%dus ts-delta=%d constant=%v\n",
				name, t.Packets, t.AUs, t.Lost, t.Reordered, t.Duplicates, t.Matched, t.Mismatched,
				t.Jumps, t.MaxGapMS, t.NTPErrMaxUS, t.TSDelta, t.TSConstant)
		}
	}
	fmt.Printf("total: readers=%d ok=%d packets=%d aus=%d lost=%d mismatched=%d\n",
		all.Readers, all.OK, all.Packets, all.AUs, all.Lost, all.Mismatched)
}
