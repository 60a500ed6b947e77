package grammar

import "time"

// started is what clocks count from where a thread has none of its own.
var started = time.Now()
