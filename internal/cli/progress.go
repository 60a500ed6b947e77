package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/baleenrun/baleen/internal/fetch"
)

// progress shows transfers: a bar on a terminal, plain lines elsewhere.
func (a *app) progress() fetch.Progress {
	if a.io.ErrTTY && a.getenv("TERM") != "dumb" {
		return &barProgress{w: a.io.Err}
	}
	return &lineProgress{w: a.io.Err, now: time.Now}
}

// barProgress draws a bar with bytes, speed and time left.
type barProgress struct {
	w   io.Writer
	bar *progressbar.ProgressBar
}

func (p *barProgress) Start(title string, done, total int64) {
	fmt.Fprintf(p.w, "Fetching %s%s\n", printableLine(title), sizeText(total, ""))
	if total == 0 {
		total = -1 // not known: the bar moves without an end
	}
	p.bar = progressbar.NewOptions64(
		total,
		progressbar.OptionSetWriter(p.w),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionUseIECUnits(false),
		progressbar.OptionSetTheme(
			progressbar.Theme{Saucer: "=", SaucerHead: ">", SaucerPadding: " ", BarStart: "[", BarEnd: "]"},
		),
	)
	p.Set(done)
}

func (p *barProgress) Set(done int64) { _ = p.bar.Set64(done) }

func (p *barProgress) Stop() {
	_ = p.bar.Exit()
	fmt.Fprintln(p.w)
}

func (p *barProgress) Note(line string) { fmt.Fprintln(p.w, printableLine(line)) }

// lineProgress writes a line now and then, for logs.
type lineProgress struct {
	w   io.Writer
	now func() time.Time

	title       string
	first       int64 // bytes at the start
	done, total int64
	began, last time.Time
	tenth       int64
}

func (p *lineProgress) Start(title string, done, total int64) {
	p.title, p.first, p.done, p.total = title, done, done, total
	p.began = p.now()
	p.last, p.tenth = p.began, done*10/max(total, 1)
	from := ""
	if done > 0 {
		from = ", continuing at " + fetch.Bytes(done)
	}
	fmt.Fprintf(p.w, "Fetching %s%s\n", printableLine(title), sizeText(total, from))
}

// sizeText is the size in brackets, where it is known.
func sizeText(total int64, more string) string {
	if total <= 0 {
		return ""
	}
	return " (" + fetch.Bytes(total) + more + ")"
}

// Set writes a line for each tenth, at most one in five seconds, and at least one in thirty.
func (p *lineProgress) Set(done int64) {
	p.done = done
	now := p.now()
	since := now.Sub(p.last)
	tenth := done * 10 / max(p.total, 1)
	if since < 5*time.Second || tenth == p.tenth && since < 30*time.Second {
		return
	}
	p.last, p.tenth = now, tenth
	fmt.Fprintf(p.w, "  %s%s, %s/s%s\n", fetch.Bytes(done), p.of(), fetch.Bytes(p.speed(now)), p.left(now))
}

func (p *lineProgress) of() string {
	if p.total <= 0 {
		return ""
	}
	return " of " + fetch.Bytes(p.total)
}

func (p *lineProgress) speed(now time.Time) int64 {
	return int64(float64(p.done-p.first) / max(now.Sub(p.began).Seconds(), 1e-3))
}

func (p *lineProgress) left(now time.Time) string {
	speed := p.speed(now)
	if speed <= 0 || p.done >= p.total {
		return ""
	}
	d := time.Duration(float64(p.total-p.done) / float64(speed) * float64(time.Second))
	return ", " + d.Round(time.Second).String() + " left"
}

func (p *lineProgress) Stop() {
	now := p.now()
	if p.done == p.first && (p.total <= 0 || p.done < p.total) {
		return // nothing came: an error says why
	}
	fmt.Fprintf(p.w, "  %s%s in %s\n", fetch.Bytes(p.done), p.of(), now.Sub(p.began).Round(100*time.Millisecond))
}

func (p *lineProgress) Note(line string) { fmt.Fprintln(p.w, printableLine(line)) }
