package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	ivfHeader      = 32
	ivfFrameHeader = 12
)

// loadPictures returns the codec of a file, as `offered` names it, and its pictures: of IVF, or of a
// byte stream of H.264, or of H.265 if its name ends so.
func loadPictures(name string) (codec string, pictures [][]byte, err error) {
	data, err := os.ReadFile(name)
	switch {
	case err != nil:
		return "", nil, err
	case bytes.HasPrefix(data, []byte("DKIF")):
		codec, pictures, err = readIVF(data)
	case strings.HasSuffix(name, ".h265"):
		codec, pictures = "h265", splitPictures(data, isPictureH265)
	default:
		codec, pictures = "h264", splitPictures(data, isPictureH264)
	}
	if err == nil && len(pictures) == 0 {
		err = errors.New("no picture")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return codec, pictures, err
}

func readIVF(data []byte) (codec string, pictures [][]byte, err error) {
	if len(data) < ivfHeader {
		return "", nil, errors.New("it is too short")
	}
	codec, known := map[string]string{"VP80": "vp8", "VP90": "vp9", "AV01": "av1"}[string(data[8:12])]
	if !known {
		return "", nil, fmt.Errorf("unknown codec %q", data[8:12])
	}
	for data = data[ivfHeader:]; len(data) >= ivfFrameHeader; {
		size := int(binary.LittleEndian.Uint32(data))
		data = data[ivfFrameHeader:]
		if size > len(data) {
			break
		}
		pictures, data = append(pictures, data[:size]), data[size:]
	}
	return codec, pictures, nil
}

// isPictureH264 and isPictureH265 say of a NAL unit whether it is a slice, and whether it is the first one of
// a picture, or one before that which belongs to it.
func isPictureH264(unit []byte) (slice, first bool) {
	kind := unit[0] & 0x1f
	slice = kind == 1 || kind == 5
	return slice, !slice && kind != 12 || slice && unit[1]&0x80 != 0
}

func isPictureH265(unit []byte) (slice, first bool) {
	kind := unit[0] >> 1 & 0x3f
	slice = kind < 32
	return slice, kind >= 32 && kind <= 35 || kind == 39 || slice && unit[2]&0x80 != 0
}

// splitPictures returns the access units of a byte stream.
func splitPictures(data []byte, isPicture func(unit []byte) (slice, first bool)) (pictures [][]byte) {
	var picture []byte
	begun := false // a slice is in it
	for _, unit := range splitAnnexB(data) {
		slice, first := isPicture(unit)
		if begun && first {
			pictures, picture, begun = append(pictures, picture), nil, false
		}
		begun = begun || slice
		picture = append(append(picture, 0, 0, 0, 1), bytes.TrimRight(unit, "\x00")...)
	}
	if begun {
		pictures = append(pictures, picture)
	}
	return pictures
}
