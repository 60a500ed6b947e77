package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"

	"github.com/baleenrun/baleen/internal/agent/event"
	"github.com/baleenrun/baleen/internal/agent/model"
	"github.com/baleenrun/baleen/internal/agent/perm"
	"github.com/baleenrun/baleen/internal/agent/prompt"
	"github.com/baleenrun/baleen/internal/agent/tool"
)

// runAll runs the calls of an answer, one after the other. Each gets a result, whatever happens.
func (a *Agent) runAll(ctx context.Context, calls []model.Call) error {
	for i, c := range calls {
		res, err := a.run(ctx, c)
		if err != nil {
			if errors.Is(err, ErrLog) {
				return err
			}
			if res.Text == "" {
				res = tool.Result{Text: "stopped by the user before it ended; what it did is done", IsError: true}
			}
		}
		if e := a.result(c, res); e != nil {
			return e
		}
		if err != nil {
			if e := a.refuseAll(calls[i+1:], "not run: stopped by the user"); e != nil {
				return e
			}
			return err
		}
	}
	return nil
}

// refuseAll answers calls that are not run.
func (a *Agent) refuseAll(calls []model.Call, why string) error {
	for _, c := range calls {
		if err := a.emit(event.ToolFinish{Call: c.ID, Name: c.Name, Failed: true, Denied: why}); err != nil {
			return err
		}
		if err := a.result(c, tool.Result{Text: why, IsError: true}); err != nil {
			return err
		}
	}
	return nil
}

// result makes the result of a call part of the conversation.
func (a *Agent) result(c model.Call, r tool.Result) error {
	text := a.bound(r.Text, r.Spill)
	if text == "" {
		text = "(no output)"
	}
	return a.say(model.Message{Role: model.Tool, Text: text, CallID: c.ID, Name: c.Name, Failed: r.IsError}, false)
}

// bound cuts a result to what leaves room for others: as many bytes as the window has tokens, a quarter of it or so.
func (a *Agent) bound(text, spill string) string {
	most := a.window
	if most == 0 || len(text) <= most {
		return text
	}
	head := strings.ToValidUTF8(text[:most*2/3], "")
	tail := strings.ToValidUTF8(text[len(text)-most/3:], "")
	where := ""
	if spill != "" {
		where = "; all of it is in " + spill
	}
	return fmt.Sprintf("%s\n[… %d bytes left out%s …]\n%s", head, len(text)-len(head)-len(tail), where, tail)
}

// run decides about a call and runs it. An error is the context's or the log's; everything else is a result.
func (a *Agent) run(ctx context.Context, c model.Call) (tool.Result, error) {
	failed := func(text string) (tool.Result, error) {
		err := a.emit(event.ToolFinish{Call: c.ID, Name: c.Name, Failed: true})
		return a.guarded(ctx, c, tool.Result{Text: text, IsError: true}, err)
	}
	t := a.find(c.Name)
	if t == nil {
		return failed(fmt.Sprintf("there is no tool %q; there are %s", c.Name, strings.Join(a.toolNames(), ", ")))
	}
	if !json.Valid([]byte(c.Args)) {
		return failed("the arguments are no JSON object")
	}
	effect, err := t.Effect(a.o.Env, json.RawMessage(c.Args))
	if err != nil {
		return failed(err.Error())
	}
	why, err := a.permit(ctx, c, effect)
	if err != nil {
		return tool.Result{}, err
	}
	if why != "" {
		err := a.emit(event.ToolFinish{Call: c.ID, Name: c.Name, Failed: true, Denied: why})
		return a.guarded(ctx, c, tool.Result{Text: "Denied: " + why, IsError: true}, err)
	}
	if err := a.emit(event.ToolStart{Call: c.ID, Name: c.Name, Args: c.Args}); err != nil {
		return tool.Result{}, err
	}
	began := a.o.Now()
	res, err := a.perform(ctx, t, c)
	if err != nil && !errors.Is(err, ErrLog) && ctx.Err() == nil {
		res, err = tool.Result{Text: err.Error(), IsError: true}, nil
	}
	for _, path := range res.Changed {
		a.changed[a.relative(path)] = true
	}
	fin := event.ToolFinish{
		Call: c.ID, Name: c.Name, Failed: res.IsError || err != nil, Diff: res.Diff, Spill: res.Spill,
		Millis: a.o.Now().Sub(began).Milliseconds(),
	}
	for _, path := range res.Changed {
		fin.Changed = append(fin.Changed, a.relative(path))
	}
	if e := a.emit(fin); e != nil {
		return res, e
	}
	if err != nil {
		return res, err
	}
	a.prove(c, res)
	text := a.unseen(ctx, c, res)
	res, err = a.guarded(ctx, c, res, nil)
	res.Text += text + a.instructions(effect)
	return res, err
}

// unseen is the text of a file that the model wanted to change without having read it: told to read it first, small models
// try the same again. What such a model made up stands in its context then, and it copies it: it is taken out of its sight.
func (a *Agent) unseen(ctx context.Context, c model.Call, res tool.Result) string {
	var args struct {
		Path string `json:"path"`
	}
	if json.Unmarshal([]byte(c.Args), &args) != nil || args.Path == "" {
		return ""
	}
	if !res.IsError {
		if c.Name == "read" || c.Name == "write" {
			a.read[args.Path] = true
		}
		return ""
	}
	if c.Name != "edit" && c.Name != "write" {
		return ""
	}
	if a.small() && c.Name == "edit" && a.find("write") != nil && a.lines(args.Path) <= prompt.WholeLines {
		a.force = "write"
	}
	if a.read[args.Path] {
		return ""
	}
	text := a.show(ctx, args.Path)
	if text == "" {
		return ""
	}
	if a.small() {
		a.rewind, a.instead = a.answerAt(), "You wanted to change "+args.Path+" and have not read it yet. It is:\n"+text
		return ""
	}
	return "\nThe file is:\n" + text
}

// show reads a file for the model, where that needs no question; "": it is not shown.
func (a *Agent) show(ctx context.Context, path string) string {
	read := a.find("read")
	arg, err := json.Marshal(map[string]string{"path": path})
	if read == nil || err != nil {
		return ""
	}
	effect, err := read.Effect(a.o.Env, arg)
	if err != nil || a.o.Policy.Decide(effect).Decision != perm.Allow {
		return ""
	}
	res, err := read.Run(ctx, a.o.Env, arg, func(string) {})
	if err != nil || res.IsError || len(res.Text) > min(maxUnseen, max(a.window/2, 1000)) {
		return ""
	}
	a.read[path] = true
	return res.Text
}

// named finds files of the workspace that a text names, as a user would write them.
func (a *Agent) named(text string) []string {
	root, err := os.OpenRoot(a.o.Env.Root)
	if err != nil {
		return nil
	}
	defer root.Close()
	var out []string
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`'\"(),;:", r) }) {
		w = strings.TrimPrefix(strings.TrimRight(w, ".!?"), "@")
		if !strings.ContainsAny(w, "./") || slices.Contains(out, w) || len(out) == maxNamed {
			continue
		}
		if st, err := root.Stat(w); err == nil && st.Mode().IsRegular() && a.lines(w) <= prompt.WholeLines {
			out = append(out, w)
		}
	}
	return out
}

// maxNamed bounds the files that are shown since the user named them.
const maxNamed = 3

// lines counts the lines of a file, as far as it matters.
func (a *Agent) lines(path string) int {
	b, err := os.ReadFile(joinRoot(a.o.Env.Root, path))
	if err != nil {
		return math.MaxInt
	}
	return bytes.Count(b, []byte("\n"))
}

// maxUnseen bounds, in bytes, the files that are shown without being asked for.
const maxUnseen = 8 << 10

// relative is a path as it is shown.
func (a *Agent) relative(path string) string {
	if rel, err := filepath.Rel(a.o.Env.Root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// perform runs a tool. It does not wait for one that goes on when ctx has ended. A panic is the call's failure.
func (a *Agent) perform(ctx context.Context, t tool.Tool, c model.Call) (tool.Result, error) {
	type outcome struct {
		res   tool.Result
		err   error
		panic string
	}
	done := make(chan outcome, 1)
	out := make(chan string, 64)
	ctx = context.WithValue(ctx, callKey{}, c.ID)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- outcome{
					tool.Result{Text: fmt.Sprintf("the tool failed: %v", p), IsError: true},
					nil,
					fmt.Sprintf("internal error in the tool %s: %v; please report it\n%s", c.Name, p, debug.Stack()),
				}
			}
		}()
		res, err := t.Run(ctx, a.o.Env, json.RawMessage(c.Args), func(text string) {
			select {
			case out <- text:
			case <-ctx.Done():
			}
		})
		done <- outcome{res, err, ""}
	}()
	var lost error
	show := func(text string) {
		if lost == nil {
			lost = a.emit(event.ToolOutput{Call: c.ID, Text: text})
		}
	}
	for {
		select {
		case text := <-out:
			show(text)
		case o := <-done:
			for len(out) > 0 {
				show(<-out)
			}
			if o.panic != "" && lost == nil {
				lost = a.emit(event.Error{Text: o.panic})
			}
			return o.res, errors.Join(o.err, lost)
		case <-ctx.Done():
			select {
			case o := <-done: // it ended for that reason, and says what it did
				if o.err == nil {
					o.err = context.Cause(ctx)
				}
				return o.res, o.err
			case <-a.patience():
				return tool.Result{}, context.Cause(ctx)
			}
		}
	}
}

type callKey struct{}

// permit asks the policy, and the user where it says so. why is the reason for which the call may not run.
func (a *Agent) permit(ctx context.Context, c model.Call, e perm.Effect) (why string, err error) {
	v := a.o.Policy.Decide(e)
	switch v.Decision {
	case perm.Allow:
		return "", nil
	case perm.Deny:
		return v.Reason, nil
	}
	if a.o.Approve == nil {
		return v.Reason + "; there is nobody to ask", nil
	}
	ans, err := a.ask(ctx, Approval{Call: c, Effect: e, Reason: v.Reason, Pattern: v.Pattern})
	switch {
	case err != nil:
		return "", err
	case !ans.Allow && ans.Reason == "":
		return "the user does not want this", nil
	case !ans.Allow:
		return "the user says: " + ans.Reason, nil
	case ans.Always && v.Pattern != "":
		if err := a.o.Policy.Always(v); err != nil {
			a.o.Policy.Allowed(v)
			return "", a.emit(event.Note{Text: "allowed this once; the rule could not be kept: " + err.Error()})
		}
	default:
		a.o.Policy.Allowed(v)
	}
	return "", nil
}

// ask puts a question to the user, and stops waiting when ctx ends.
func (a *Agent) ask(ctx context.Context, q Approval) (Answer, error) {
	err := a.emit(event.Asked{Call: q.Call.ID, Name: q.Call.Name, Args: q.Call.Args, Reason: q.Reason, Pattern: q.Pattern})
	if err != nil {
		return Answer{}, err
	}
	got := make(chan Answer, 1)
	go func() { got <- a.o.Approve(ctx, q) }()
	var ans Answer
	select {
	case ans = <-got:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	word := "deny"
	switch {
	case ans.Allow && ans.Always && q.Pattern != "":
		word = "always"
	case ans.Allow:
		word = "allow"
	}
	return ans, a.emit(event.Answered{Call: q.Call.ID, Answer: word, Reason: ans.Reason})
}

// question puts what the model asks to the user.
func (a *Agent) question(ctx context.Context, q tool.Question) (string, error) {
	if err := a.emit(event.Question{Text: q.Text, Choices: q.Choices}); err != nil {
		return "", err
	}
	answer, err := a.o.Ask(ctx, q)
	if err != nil {
		return "", err
	}
	return answer, a.emit(event.Question{Text: q.Text, Choices: q.Choices, Answer: answer})
}

// escalate asks whether a command may be run again with what the sandbox has denied.
func (a *Agent) escalate(ctx context.Context, e tool.Escalation) bool {
	id, _ := ctx.Value(callKey{}).(string)
	args, err := json.Marshal(map[string]string{"command": e.Command})
	if err != nil {
		return false
	}
	why := "the sandbox kept it from " + strings.Join(e.Paths, ", ")
	if len(e.Paths) == 0 {
		why = "the sandbox kept it from something: " + e.Reason
	}
	ans, err := a.ask(ctx, Approval{
		Call: model.Call{ID: id, Name: "bash", Args: string(args)}, Reason: why + "; run it again with that allowed?",
		Effect: perm.Effect{Reads: e.Paths, Writes: e.Paths},
	})
	return err == nil && ans.Allow
}

// instructions are those of the folders that a call has reached first.
func (a *Agent) instructions(e perm.Effect) string {
	if a.o.Instructions == nil {
		return ""
	}
	var b strings.Builder
	for _, path := range append(append([]string(nil), e.Reads...), e.Writes...) {
		for _, i := range a.o.Instructions.For(path) {
			b.WriteString("\n" + i.String())
		}
	}
	return b.String()
}
