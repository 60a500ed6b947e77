package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/baleenrun/baleen/internal/agent/perm"
)

// A job is a command that runs in the background.
type job struct {
	id      int
	command string
	began   time.Time
	out     *output
	p       running
	done    chan struct{}

	mu   sync.Mutex
	said string // how it ended
	told int64  // bytes of its output that the model was shown; guarded by out.mu
}

// maxJobs bounds the commands that run at a time.
const maxJobs = 8

// background starts a command that goes on while the model does something else.
func (e *Env) background(command string) Result {
	e.state.mu.Lock()
	alive := 0
	for _, j := range e.state.jobs {
		if j.ended() == "" {
			alive++
		}
	}
	id := len(e.state.jobs) + 1
	e.state.mu.Unlock()
	if alive >= maxJobs {
		return failed("%d commands run in the background already: kill one with the tool jobs", alive)
	}
	j := &job{id: id, command: command, began: e.now(), done: make(chan struct{}), out: &output{file: e.spillFile("job")}}
	j.out.mu.Lock()
	j.out.begin() // all of it goes to the file, so that it can be read while it runs
	j.out.mu.Unlock()
	p, err := e.start(context.Background(), command, "", e.Sandbox, j.out)
	if err != nil {
		j.out.close()
		return failed("nothing was run: %v", err)
	}
	j.p = p
	e.state.mu.Lock()
	e.state.jobs = append(e.state.jobs, j)
	e.state.mu.Unlock()
	go func() {
		code, note, err := p.wait()
		j.mu.Lock()
		j.said = fmt.Sprintf("ended with exit code %d", code)
		if err != nil {
			j.said = err.Error()
		} else if note != "" {
			j.said += "; " + note
		}
		j.mu.Unlock()
		j.out.close()
		close(j.done)
	}()
	select { // what fails at once says so at once
	case <-j.done:
	case <-time.After(jobFirstLook):
	}
	text := fmt.Sprintf("job %d runs in the background", j.id)
	written, toFile := j.out.state()
	if toFile {
		text += "; read its output in " + j.out.file
	}
	text += ". The tool jobs shows and kills jobs."
	if how := j.ended(); how != "" {
		text = fmt.Sprintf("job %d %s", j.id, how)
	}
	if s, _ := j.out.text(e.most()); written > 0 {
		text += "\n" + s
	}
	j.out.mu.Lock()
	j.told = written
	j.out.mu.Unlock()
	return Result{Text: strings.TrimRight(text, "\n"), IsError: j.ended() != "" && !strings.HasSuffix(j.ended(), "code 0")}
}

// jobFirstLook is how long a command in the background is looked at before the model goes on.
const jobFirstLook = 300 * time.Millisecond

// ended says how a job has ended; "": it runs.
func (j *job) ended() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said
}

func (j *job) stop() {
	j.p.stop()
	<-j.done
}

// jobs shows and ends commands in the background.
type jobs struct{}

type jobsArgs struct {
	Job  int  `json:"job,omitempty"`
	Wait int  `json:"wait,omitempty"`
	Kill bool `json:"kill,omitempty"`
}

func (jobs) Spec() Spec {
	return Spec{
		Name:        "jobs",
		Description: "Show commands that run in the background. job: its new output. wait: seconds for its end. kill: end it.",
		Parameters:  schema("job?:integer", "wait?:integer", "kill?:boolean"),
	}
}

// Effect is nothing: what the commands do was decided when they began.
func (jobs) Effect(_ *Env, args json.RawMessage) (perm.Effect, error) {
	var a jobsArgs
	return perm.Effect{}, decode(args, &a)
}

func (jobs) Run(ctx context.Context, env *Env, args json.RawMessage, _ func(string)) (Result, error) {
	var a jobsArgs
	if err := decode(args, &a); err != nil {
		return failed("%v", err), nil
	}
	env.state.mu.Lock()
	all := env.state.jobs
	env.state.mu.Unlock()
	if a.Job == 0 {
		if len(all) == 0 {
			return Result{Text: "no command runs in the background"}, nil
		}
		var b strings.Builder
		for _, j := range all {
			fmt.Fprintf(&b, "job %d, %s: %s\n", j.id, j.how(env), cut(j.command, 100))
		}
		return Result{Text: strings.TrimSuffix(b.String(), "\n")}, nil
	}
	if a.Job < 0 || a.Job > len(all) {
		return failed("there is no job %d; there are %d", a.Job, len(all)), nil
	}
	j := all[a.Job-1]
	switch {
	case a.Kill && j.ended() == "":
		j.stop()
	case a.Wait > 0:
		select {
		case <-j.done:
		case <-time.After(time.Duration(min(a.Wait, 600)) * time.Second):
		case <-ctx.Done():
			return Result{}, context.Cause(ctx)
		}
	}
	text := j.news(env.most())
	return Result{Text: join(text, fmt.Sprintf("job %d %s", j.id, j.how(env))), Spill: j.out.file}, nil
}

func (j *job) how(env *Env) string {
	if s := j.ended(); s != "" {
		return s
	}
	return "runs, since " + env.now().Sub(j.began).Round(time.Second).String()
}

// news is what a job has put out since it was last shown, or the end of that.
func (j *job) news(most int) string {
	o := j.out
	o.mu.Lock()
	defer o.mu.Unlock()
	fresh := o.total - j.told
	j.told = o.total
	all := append(append([]byte(nil), o.head...), o.tail...)
	n := min(fresh, int64(len(all)), int64(min(most, outTail)))
	text := clean(string(all[int64(len(all))-n:]))
	if n < fresh {
		text = fmt.Sprintf("[… %s left out; all of it is in %s …]\n", size(fresh-n), o.file) + text
	}
	return strings.TrimRight(text, "\n")
}
