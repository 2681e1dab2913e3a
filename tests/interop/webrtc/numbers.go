package main

import (
	"sync"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
)

// Looks at the transport-wide numbers of the packets that arrive.
type numbers struct {
	interceptor.NoOp
	lock        sync.Mutex
	seen        map[int64]bool // unwrapped
	first, last int64
	without     int // packets that have none
}

type numbersFactory struct{ *numbers }

func (f numbersFactory) NewInterceptor(string) (interceptor.Interceptor, error) {
	return f.numbers, nil
}

func (s *numbers) BindRemoteStream(info *interceptor.StreamInfo, reader interceptor.RTPReader) interceptor.RTPReader {
	id := 0
	for _, extension := range info.RTPHeaderExtensions {
		if extension.URI == sdp.TransportCCURI {
			id = extension.ID
		}
	}
	return interceptor.RTPReaderFunc(func(data []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
		n, attributes, err := reader.Read(data, a)
		if err == nil {
			s.take(data[:n], uint8(id))
		}
		return n, attributes, err
	})
}

func (s *numbers) take(data []byte, id uint8) {
	var header rtp.Header
	var transport rtp.TransportCCExtension
	if _, err := header.Unmarshal(data); err != nil {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if id == 0 || transport.Unmarshal(header.GetExtension(id)) != nil {
		s.without++
		return
	}
	number := s.last + int64(int16(transport.TransportSequence-uint16(s.last)))
	if len(s.seen) == 0 {
		number = int64(transport.TransportSequence)
		s.first, s.last = number, number
	}
	s.first, s.last = min(s.first, number), max(s.last, number)
	s.seen[number] = true
}

// missing returns how many numbers between the first and the last one did not come.
func (s *numbers) missing() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(s.seen) == 0 {
		return 0
	}
	return int(s.last-s.first) + 1 - len(s.seen)
}
