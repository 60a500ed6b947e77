package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/go-analyze/charts"
)

// PlotFormat returns the format that a file's name asks for.
func PlotFormat(path string) (string, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg":
		return charts.ChartOutputSVG, nil
	case ".png":
		return charts.ChartOutputPNG, nil
	}
	return "", fmt.Errorf("cannot plot to %s: the name must end in .svg or .png", path)
}

// WritePlot draws prefill and generation speeds side by side.
func WritePlot(path string, r Result) error {
	format, err := PlotFormat(path)
	if err != nil {
		return err
	}
	const width, height = 900, 420
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: format, Width: width, Height: height})
	p.FilledRect(0, 0, width, height, charts.ColorWhite, charts.ColorWhite, 0)
	font := charts.NewFontStyleWithSize(14)
	font.FontColor = charts.ColorBlack
	p.Text(fmt.Sprintf("%s %s, %d threads (%s)", r.Model, r.Quantization, r.Threads, r.CPU), 20, 30, 0, font)
	prefill := bars{
		title: fmt.Sprintf("Prefill of %d tokens, tokens/s", r.Prompt),
		names: []string{""}, values: []float64{r.PrefillTPS},
	}
	decode := bars{title: "Generation, tokens/s", sub: limitText(r)}
	for _, n := range streamCounts(r) {
		decode.names = append(decode.names, streams(n))
		decode.values = append(decode.values, r.AggregateTPS[strconv.Itoa(n)])
	}
	const top, middle = 40, width * 4 / 10
	if err := prefill.draw(p.Child(charts.PainterBoxOption(charts.NewBox(0, top, middle, height)))); err != nil {
		return err
	}
	if err := decode.draw(p.Child(charts.PainterBoxOption(charts.NewBox(middle, top, width, height)))); err != nil {
		return err
	}
	b, err := p.Bytes()
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

func limitText(r Result) string {
	if r.DecodeShare == 0 {
		return ""
	}
	return fmt.Sprintf("one stream reads %.0f %% of the %.1f GB/s that memory gives", 100*r.DecodeShare, r.ReadGBps)
}

func streamCounts(r Result) []int {
	var counts []int
	for key := range r.AggregateTPS {
		if n, err := strconv.Atoi(key); err == nil {
			counts = append(counts, n)
		}
	}
	sort.Ints(counts)
	return counts
}

// bars is one panel of a plot.
type bars struct {
	title, sub string
	names      []string
	values     []float64
}

func (b bars) draw(p *charts.Painter) error {
	o := charts.NewBarChartOptionWithData([][]float64{b.values})
	o.Title = charts.TitleOption{Text: b.title, Subtext: b.sub}
	o.Padding = charts.NewBoxEqual(20)
	o.CategoryAxis.Labels = b.names
	o.Legend = charts.LegendOption{Show: charts.Ptr(false)}
	o.ValueFormatter = number
	o.ValueAxis = []charts.ValueAxisOption{{Min: charts.Ptr(0.0)}}
	o.BarSize = 0.4
	for i := range o.SeriesList {
		o.SeriesList[i].Label.Show = charts.Ptr(true)
		o.SeriesList[i].Label.ValueFormatter = number
	}
	return p.BarChart(o)
}

// number writes a speed with three digits or so.
func number(v float64) string {
	if math.Abs(v) >= 100 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
