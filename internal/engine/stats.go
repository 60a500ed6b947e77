package engine

import "time"

// Stats are counters and levels of an engine.
type Stats struct {
	Steps     int64 // steps run
	Rows      int64 // rows computed in them
	Prompt    int64 // prompt tokens of admitted requests
	Cached    int64 // of these, found in the cache
	Generated int64 // tokens drawn
	Swaps     int64 // times that a sequence was moved out under pressure
	Evicted   int64 // cached pages given up

	Running, Waiting, Swapped         int // requests now
	Groups                            []PageStats
	SlotsFree, SlotsCached, SlotsHeld int
	SwapBytes                         int64 // host memory in use

	ChunkRows int           // prompt rows that a step takes now while streams run
	StepTime  time.Duration // of the last step
}

// PageStats counts the pages of one group: Free + Cached + Held = Total.
type PageStats struct{ Window, Total, Free, Cached, Held int }
