package ollama

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/baleenrun/baleen/internal/auth"
	"github.com/baleenrun/baleen/internal/chat"
	"github.com/baleenrun/baleen/internal/server"
	"github.com/baleenrun/baleen/internal/server/fields"
	"github.com/baleenrun/baleen/internal/server/modeladmin"
)

func (d *dialect) manageRoutes() []server.Route {
	createObjects := []fields.ObjectTable{optionsTable, messageTable, toolCallTable, callFunctionTable}
	return []server.Route{
		{
			Method:  "POST",
			Path:    "/api/pull",
			Scope:   auth.Manage,
			Body:    pullTable,
			Stream:  ndjson,
			Answers: []int{404},
			Summary: "Fetch a model, with its progress",
			Answer:  progressBody{},
			Piece:   fields.Either{progressBody{}, errorBody{}},
			Handle:  d.pull,
		},
		{
			Method:  "POST",
			Path:    "/api/push",
			Scope:   auth.Manage,
			Body:    pushTable,
			Answers: []int{404},
			Summary: "Refused: this server publishes nothing",
			Handle:  d.push,
		},
		{
			Method:  "POST",
			Path:    "/api/create",
			Scope:   auth.Manage,
			Body:    createTable,
			Objects: createObjects,
			Stream:  ndjson,
			Answers: []int{404},
			Summary: "Make a model of another one, or of uploaded files",
			Answer:  progressBody{},
			Piece:   fields.Either{progressBody{}, errorBody{}},
			Handle:  d.create,
		},
		{
			Method:  "POST",
			Path:    "/api/copy",
			Scope:   auth.Manage,
			Body:    copyTable,
			Empty:   true,
			Answers: []int{404},
			Summary: "Give a model a second name",
			Handle:  d.copy,
		},
		{
			Method:  "DELETE",
			Path:    "/api/delete",
			Scope:   auth.Manage,
			Body:    deleteTable,
			Empty:   true,
			Answers: []int{404},
			Summary: "Remove a model",
			Handle:  d.delete,
		},
		{
			Method:      "HEAD",
			Path:        "/api/blobs/{digest}",
			Scope:       auth.Manage,
			Empty:       true,
			PathPattern: blobPattern,
			Answers:     []int{400},
			Summary:     "Whether a file was uploaded",
			Handle:      d.hasBlob,
		},
		{
			Method: "POST", Path: "/api/blobs/{digest}", Scope: auth.Manage, Empty: true, Upload: true, PathPattern: blobPattern, MaxBody: -1, Answers: []int{201, 400, 408, 413, 507}, Handle: d.putBlob,
			Summary: "Upload a file for /api/create: the body is the file, the name is sha256: and its checksum",
		},
	}
}

// keep returns the keeper, or the refusal of a server that has none.
func (d *dialect) keep() (modeladmin.Keeper, error) {
	if d.keeper == nil {
		return nil, &chat.Error{Kind: chat.Forbidden, Msg: "this server does not change its models over HTTP"}
	}
	return d.keeper, nil
}

func stream(n *naming, v fields.Value) error { n.stream = v.Bool(); return nil }

const streamDoc = "progress in JSON lines, which is the default; false: one JSON object at the end"

var pullTable = &fields.Table[naming]{Name: "pull", IgnoreUnknown: true, Where: nameable, Fields: namedFields(
	honoured("stream", fields.Bool(), streamDoc, stream),
	fields.Field[naming]{
		Name:  "insecure",
		Type:  fields.Bool(),
		Use:   fields.Refused,
		Allow: []string{"false"},
		Doc:   "models are fetched over encrypted connections only",
	},
	fields.Field[naming]{
		Name: "username",
		Type: fields.Any(),
		Use:  fields.Ignored,
		Doc:  "Ollama's own server does not read it",
	},
	fields.Field[naming]{
		Name: "password",
		Type: fields.Any(),
		Use:  fields.Ignored,
		Doc:  "Ollama's own server does not read it",
	},
)}

var pushTable = &fields.Table[naming]{Name: "push", IgnoreUnknown: true, Where: somewhere, Fields: namedFields(
	honoured("stream", fields.Bool(), streamDoc, stream),
	fields.Field[naming]{Name: "insecure", Type: fields.Any(), Use: fields.Ignored, Doc: "nothing is sent"},
	fields.Field[naming]{Name: "username", Type: fields.Any(), Use: fields.Ignored, Doc: "nothing is sent"},
	fields.Field[naming]{Name: "password", Type: fields.Any(), Use: fields.Ignored, Doc: "nothing is sent"},
)}

var deleteTable = &fields.Table[naming]{Name: "delete", IgnoreUnknown: true, Where: somewhere, Fields: namedFields()}

type copying struct{ source, destination string }

var copyTable = &fields.Table[copying]{Name: "copy", IgnoreUnknown: true, Fields: []fields.Field[copying]{
	{
		Name:     "source",
		Type:     fields.String().Pattern(notBlank),
		Required: true,
		Doc:      "name of a model",
		Set:      func(p *copying, v fields.Value) error { p.source = v.String(); return nil },
	},
	{
		Name:     "destination",
		Type:     fields.String().Pattern(namePattern),
		Required: true,
		Doc:      "its second name",
		Set:      func(p *copying, v fields.Value) error { p.destination = v.String(); return nil },
	},
}}

func (d *dialect) pull(w http.ResponseWriter, r *http.Request) error {
	n := naming{stream: true}
	if err := decode(r, pullTable, &n); err != nil {
		return err
	}
	k, err := d.keep()
	if err != nil {
		return err
	}
	name := n.nameOf()
	if strings.Contains(name, "://") { // else whoever may pull could make the server ask any address around it
		return chat.Invalidf(
			"model",
			"addresses are not fetched for clients: name a model of the catalog, hf.co/ORG/REPO or NAME:TAG",
		)
	}
	if err := checkName("model", name); err != nil {
		return err
	}
	return d.progress(
		w,
		n.stream,
		func(report func(modeladmin.Progress)) error { return k.Pull(r.Context(), name, report) },
	)
}

func (d *dialect) push(_ http.ResponseWriter, r *http.Request) error {
	n := naming{stream: true}
	if err := decode(r, pushTable, &n); err != nil {
		return err
	}
	if _, err := d.resolve(r.Context(), n.nameOf()); err != nil {
		return err
	}
	return &chat.Error{Kind: chat.Forbidden, Msg: "this server publishes no models: nothing leaves the machine"}
}

// progressBody is a modeladmin.Progress as it is sent.
type progressBody struct {
	Status    string `json:"status"`
	Digest    string `json:"digest,omitempty"` // sha256:...
	Total     int64  `json:"total,omitempty"`
	Completed int64  `json:"completed,omitempty"`
}

// reportEvery bounds how often the progress of one file is told.
const reportEvery = 100 * time.Millisecond

// progress runs work and writes its steps, the last of which is success.
func (d *dialect) progress(
	w http.ResponseWriter,
	stream bool,
	work func(report func(modeladmin.Progress)) error,
) error {
	done := progressBody{Status: "success"}
	if !stream {
		if err := work(func(modeladmin.Progress) {}); err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, done)
	}
	lines := d.env.NewLines(w)
	var last modeladmin.Progress
	var told time.Time
	err := work(func(p modeladmin.Progress) {
		same := p.Status == last.Status && p.Digest == last.Digest
		if same && p.Completed != p.Total && time.Since(told) < reportEvery {
			return
		}
		last, told = p, time.Now()
		lines.Line(
			progressBody(p),
		) //nolint:errcheck // the writer keeps its error, and a client that left ends the context
	})
	if err == nil {
		return lines.Line(done)
	}
	if lines.Withdraw() {
		return err
	}
	return endLines(lines, chat.AsError(err))
}

func (d *dialect) copy(w http.ResponseWriter, r *http.Request) error {
	var p copying
	if err := decode(r, copyTable, &p); err != nil {
		return err
	}
	k, err := d.keep()
	if err != nil {
		return err
	}
	if err := checkName("destination", p.destination); err != nil {
		return err
	}
	s, err := d.resolve(r.Context(), p.source)
	if err != nil {
		return err
	}
	if err := k.Copy(r.Context(), s.Name, p.destination); err != nil {
		var bad *chat.Error
		if errors.As(err, &bad) && bad.Kind == chat.Invalid && bad.Field == "model" {
			named := *bad
			named.Field = "destination" // as this route calls it
			return &named
		}
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (d *dialect) delete(w http.ResponseWriter, r *http.Request) error {
	var n naming
	if err := decode(r, deleteTable, &n); err != nil {
		return err
	}
	k, err := d.keep()
	if err != nil {
		return err
	}
	s, err := d.resolve(r.Context(), n.nameOf())
	if err != nil {
		return err
	}
	unload := func() {
		d.env.Chat.Unload(r.Context(), s.Name) //nolint:errcheck // a model that cannot be found is not loaded
	}
	if err := k.Delete(r.Context(), s.Name, unload); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

const blobPattern = "^sha256[:-][0-9A-Fa-f]{64}$"

func blobDigest(field, s string) (string, error) {
	hex, ok := strings.CutPrefix(strings.Replace(s, "sha256-", "sha256:", 1), "sha256:")
	if !ok || len(hex) != 64 || strings.Trim(strings.ToLower(hex), "0123456789abcdef") != "" {
		return "", chat.Invalidf(field, "%q is no digest: want sha256: and 64 hexadecimal digits", s)
	}
	return strings.ToLower(hex), nil
}

func (d *dialect) hasBlob(w http.ResponseWriter, r *http.Request) error {
	k, err := d.keep()
	if err != nil {
		return err
	}
	hex, err := blobDigest("digest", r.PathValue("digest"))
	if err != nil {
		return err
	}
	ok, err := k.HasBlob(r.Context(), hex)
	if err != nil {
		return err
	}
	if !ok {
		return &chat.Error{Kind: chat.NotFound, Msg: fmt.Sprintf("blob %q not found", r.PathValue("digest"))}
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (d *dialect) putBlob(w http.ResponseWriter, r *http.Request) error {
	k, err := d.keep()
	if err != nil {
		return err
	}
	hex, err := blobDigest("digest", r.PathValue("digest"))
	if err != nil {
		return err
	}
	if ok, err := k.HasBlob(r.Context(), hex); err != nil {
		return err
	} else if ok {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	if err := k.PutBlob(r.Context(), hex, r.ContentLength, &upload{r.Body, http.NewResponseController(w)}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

// uploadPause is how long a client may take for a piece of a file.
const uploadPause = time.Minute

// An upload is a body that may take as long as it likes while it goes on.
type upload struct {
	body io.Reader
	rc   *http.ResponseController
}

func (u *upload) Read(p []byte) (int, error) {
	u.rc.SetReadDeadline(time.Now().Add(uploadPause)) //nolint:errcheck // writers of tests have none
	n, err := u.body.Read(p)
	switch err {
	case nil:
	case io.EOF:
		u.rc.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
	default:
		err = server.BodyError(err)
	}
	return n, err
}

// checkName refuses what cannot be a model's name, before it comes near a file system.
func checkName(field, name string) error {
	if name == "" {
		return &chat.Error{Kind: chat.Invalid, Field: field, Missing: true, Msg: field + " is required"}
	}
	if len(name) > 300 || !modelName.MatchString(name) {
		return chat.Invalidf(
			field,
			"%q is no name of a model: want letters, digits and - _ . : /, such as mine or team/mine:small",
			name,
		)
	}
	return nil
}

// namePattern allows no empty part and none that begins with a dot: names become parts of paths.
const namePattern = `^[A-Za-z0-9_:@-]+([./][A-Za-z0-9_:@-]+)*$`

var modelName = regexp.MustCompile(namePattern)
