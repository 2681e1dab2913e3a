module weir/tests/interop

go 1.24.0

require (
	github.com/abema/go-mp4 v1.4.1
	github.com/bluenviron/gortsplib/v5 v5.2.1
	github.com/bluenviron/mediacommon/v2 v2.5.2
	github.com/pion/rtcp v1.2.16
	github.com/pion/rtp v1.8.26
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/gorilla/websocket v1.5.3 // indirect
	github.com/pion/logging v0.2.4 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/sdp/v3 v3.0.16 // indirect
	github.com/pion/srtp/v3 v3.0.9 // indirect
	github.com/pion/transport/v3 v3.1.1 // indirect
	golang.org/x/net v0.47.0 // indirect
	golang.org/x/sys v0.38.0 // indirect
)
