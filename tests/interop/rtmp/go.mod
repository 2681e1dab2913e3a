module weir/tests/interop/rtmp

go 1.25.0

require (
	github.com/bluenviron/gortmplib v1.0.1
	github.com/bluenviron/mediacommon/v2 v2.9.3
)

require (
	github.com/abema/go-mp4 v1.7.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
)
