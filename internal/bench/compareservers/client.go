package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// An ask is one request of a load.
type ask struct {
	path string
	body []byte
}

// An answer is what a client saw of one streamed request.
type answer struct {
	begin  time.Time
	at     []time.Time // of each event that had text
	end    time.Time
	prompt int // tokens, as the server counts them
	tokens int
}

func (a *answer) first() time.Duration { return a.at[0].Sub(a.begin) }

// A client reads streams with as little work as it can: it shares the processors with the server.
type client struct {
	url  string
	http *http.Client
}

func newClient(url string) *client {
	return &client{
		url: url,
		http: &http.Client{
			Transport: &http.Transport{
				MaxIdleConnsPerHost: 64,
				DisableCompression:  true,
				IdleConnTimeout:     2 * time.Second,
			},
		},
	}
}

var (
	dataPrefix = []byte("data: ")
	endOfData  = []byte("[DONE]")
	texts      = [][2][]byte{
		{[]byte(`"content":"`), []byte(`"content":""`)},
		{[]byte(`"text":"`), []byte(`"text":""`)},
	}
	usageMark = []byte(`"completion_tokens":`)
	errorMark = []byte(`"error":{`)
)

// ask sends a streaming request and reads its answer to the end.
func (c *client) ask(ctx context.Context, q ask) (*answer, error) {
	a := &answer{begin: time.Now(), at: make([]time.Time, 0, 160)}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header["Idempotency-Key"] = nil // not sent: a connection that the server has just closed is replaced by a new one
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return nil, fmt.Errorf("%s: %s: %s", q.path, res.Status, b)
	}
	return a, a.read(bufio.NewReaderSize(res.Body, 16<<10))
}

// read notes when each piece of text came. Of JSON it looks at marks only, except in the last event.
func (a *answer) read(r *bufio.Reader) error {
	done := false
	for {
		line, err := r.ReadSlice('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), dataPrefix)
		switch {
		case !ok:
		case bytes.Equal(data, endOfData):
			a.end, done = time.Now(), true
		case bytes.Contains(data, errorMark):
			return fmt.Errorf("an error in the stream: %s", data)
		case hasText(data):
			a.at = append(a.at, time.Now())
		}
		if ok && bytes.Contains(data, usageMark) {
			if err := a.usage(data); err != nil {
				return err
			}
		}
	}
	switch {
	case !done:
		return errors.New("the stream has no end")
	case len(a.at) == 0 || a.tokens == 0:
		return errors.New("the answer has no text, or no usage")
	}
	return nil
}

func hasText(data []byte) bool {
	for _, t := range texts {
		if bytes.Contains(data, t[0]) && !bytes.Contains(data, t[1]) {
			return true
		}
	}
	return false
}

func (a *answer) usage(data []byte) error {
	var v struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
			Tokens int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	a.prompt, a.tokens = v.Usage.Prompt, v.Usage.Tokens
	return nil
}

// model returns the name of the model that the server lists first.
func (c *client) model(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/v1/models", nil)
	if err != nil {
		return "", err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var v struct {
		Data []struct {
			ID string `json:"id"`
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		return "", fmt.Errorf("/v1/models: %w", err)
	}
	if len(v.Data) == 0 {
		return "", errors.New("/v1/models lists none")
	}
	return v.Data[0].ID, nil
}

// get reports whether a path answers 200.
func (c *client) get(ctx context.Context, path string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return false
	}
	res, err := c.http.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode == http.StatusOK
}
