package openai

import "github.com/baleenrun/baleen/internal/server/fields"

// earlier are the fields of items that only say something of an earlier answer.
func earlier(more ...fields.Field[struct{}]) []fields.Field[struct{}] {
	return append(more,
		declaredField{Name: "id", Type: fields.Any(), Use: fields.Ignored, Doc: "of an earlier answer"},
		declaredField{Name: "status", Type: fields.Any(), Use: fields.Ignored, Doc: "of an earlier answer"},
		declaredField{Name: "phase", Type: fields.Any(), Use: fields.Ignored, Doc: "of an earlier answer"},
	)
}

// The items of a response's input.
var (
	itemContent = fields.String().Or(fields.List(fields.Object("input content")))
	needed      = fields.String().NotEmpty()

	messageItem = &declared{Name: "message item", IgnoreUnknown: true, Fields: earlier(
		declaredField{Name: "type", Type: fields.Enum("message"), Doc: "message; may be left out"},
		declaredField{
			Name:     "role",
			Type:     fields.Enum("user", "assistant", "system", "developer"),
			Required: true,
			Doc:      "who speaks",
		},
		declaredField{Name: "content", Type: itemContent, Required: true, Doc: "what is said"},
	)}
	reasoningText = &declared{Name: "reasoning text", IgnoreUnknown: true, Fields: []fields.Field[struct{}]{
		{Name: "type", Type: fields.Any(), Use: fields.Ignored, Doc: "the field that the text stands in counts"},
		declaredField{Name: "text", Type: fields.String(), Doc: "the text"},
	}}
	reasoningItem = &declared{Name: "reasoning item", IgnoreUnknown: true, Fields: earlier(
		typeField("reasoning"),
		declaredField{Name: "content", Type: fields.List(fields.Object("reasoning text")), Doc: "the reasoning"},
		declaredField{
			Name: "summary",
			Type: fields.List(fields.Object("reasoning text")),
			Doc:  "stands in for content where there is none",
		},
		declaredField{
			Name: "encrypted_content",
			Type: fields.String(),
			Doc:  "as it came from this server: carries the reasoning where nothing else does",
		},
	)}
	callItem = &declared{Name: "function call item", IgnoreUnknown: true, Fields: earlier(
		typeField("function_call"),
		declaredField{Name: "call_id", Type: needed, Required: true, Doc: "the call's id"},
		declaredField{Name: "name", Type: needed, Required: true, Doc: "of the function"},
		declaredField{Name: "namespace", Type: fields.String(), Doc: "in which the function stands"},
		declaredField{
			Name: "arguments",
			Type: fields.String().Where(map[string]any{"contentMediaType": "application/json"}),
			Doc:  "JSON text of an object",
		},
	)}
	customCallItem = &declared{Name: "custom tool call item", IgnoreUnknown: true, Fields: earlier(
		typeField("custom_tool_call"),
		declaredField{Name: "call_id", Type: needed, Required: true, Doc: "the call's id"},
		declaredField{Name: "name", Type: needed, Required: true, Doc: "of the tool"},
		declaredField{Name: "namespace", Type: fields.String(), Doc: "in which the tool stands"},
		declaredField{Name: "input", Type: fields.String(), Doc: "its input"},
	)}
	outputItem       = outputOf("function_call_output", "function call output item")
	customOutputItem = outputOf("custom_tool_call_output", "custom tool call output item")
	referenceItem    = &declared{Name: "item reference", IgnoreUnknown: true, Fields: []fields.Field[struct{}]{
		typeField("item_reference"),
		declaredField{Name: "id", Type: fields.String(), Required: true, Doc: "of an item of a kept response"},
	}}
)

func outputOf(kind, name string) *declared {
	return &declared{Name: name, IgnoreUnknown: true, Fields: earlier(
		typeField(kind),
		declaredField{Name: "call_id", Type: needed, Required: true, Doc: "the call that it answers"},
		declaredField{Name: "output", Type: itemContent, Required: true, Doc: "the result"},
	)}
}

// itemTables are the tables of items by type, but for references.
var itemTables = map[string]*declared{
	"message": messageItem, "reasoning": reasoningItem, "function_call": callItem, "custom_tool_call": customCallItem,
	"function_call_output": outputItem, "custom_tool_call_output": customOutputItem,
}

func itemObjects() []fields.ObjectTable {
	items := []fields.ObjectTable{
		messageItem,
		reasoningItem,
		callItem,
		customCallItem,
		outputItem,
		customOutputItem,
		referenceItem,
	}
	return append([]fields.ObjectTable{&fields.OneOf{Name: "input item", Of: items}, reasoningText}, items...)
}

// The objects of tool_choice, in the shape of responses.
var (
	responseFunctionChoice = &declared{
		Name:          "response function choice",
		IgnoreUnknown: true,
		Fields: []fields.Field[struct{}]{
			declaredField{Name: "type", Type: fields.Enum("function"), Required: true, Doc: "function"},
			declaredField{Name: "name", Type: fields.String(), Required: true, Doc: "of a function among the tools"},
			declaredField{Name: "namespace", Type: fields.String(), Doc: "in which it stands"},
		},
	}
	responseAllowedChoice = &declared{
		Name:          "response allowed tools choice",
		IgnoreUnknown: true,
		Fields: []fields.Field[struct{}]{
			typeField("allowed_tools"), modeField(),
			declaredField{
				Name:     "tools",
				Type:     fields.List(fields.Object("name of a function")),
				Required: true,
				Doc:      "those that may be called",
			},
		},
	}
	responseChoices = &fields.OneOf{
		Name: "response tool choice",
		Of:   []fields.ObjectTable{responseFunctionChoice, responseAllowedChoice},
	}
)
