"""Prints, as JSON, the names of the fields that the official SDKs' types have, by dialect and by our table of them."""
import json
import types
import typing

import anthropic.types.beta as beta
import anthropic.types.beta.message_count_tokens_params as count_params
import anthropic.types.beta.message_create_params as message_params
import ollama._types as ollama
import openai.types.chat as chat
import openai.types.chat.completion_create_params as chat_params
import openai.types.completion_create_params as completion_params
import openai.types.responses as responses
import openai.types.responses.response_create_params as response_params
import openai.types.shared_params as shared
import typing_extensions


def typed_dicts(t):
    """The TypedDicts in a type, those of unions and lists included."""
    if typing_extensions.is_typeddict(t):
        return [t]
    if isinstance(t, (types.UnionType,)) or typing.get_args(t):
        return [d for a in typing.get_args(t) for d in typed_dicts(a)]
    return []


def names(*ts, but=()):
    found = [d for t in ts for d in typed_dicts(t)]
    assert found, ts
    return sorted({n for d in found for n in typing_extensions.get_type_hints(d)} - set(but))


def model(*classes):
    return sorted({f.alias or n for c in classes for n, f in c.model_fields.items()})


# These travel in headers, not in the body.
headers = ("betas", "workspace_id", "user_profile_id")

print(json.dumps({
    "openai": {
        "chat completion request": names(chat_params.CompletionCreateParams),
        "completion request": names(completion_params.CompletionCreateParams),
        "response request": names(response_params.ResponseCreateParams),
        "message": names(chat.ChatCompletionMessageParam),
        "content part": names(chat.ChatCompletionContentPartParam, chat.ChatCompletionContentPartRefusalParam),
        "tool call": names(chat.ChatCompletionMessageToolCallUnionParam),
        "tool": names(chat.ChatCompletionToolUnionParam),
        "function": names(shared.FunctionDefinition),
        "stream_options": names(chat.ChatCompletionStreamOptionsParam, response_params.StreamOptions),
        "reasoning": names(shared.Reasoning),
        "text": names(responses.ResponseTextConfigParam),
        "response tool": names(responses.FunctionToolParam, responses.CustomToolParam, responses.NamespaceToolParam),
        "input content": names(
            responses.ResponseInputContentParam, responses.ResponseOutputTextParam, responses.ResponseOutputRefusalParam,
            responses.ResponseInputAudioParam, but=("input_audio",),
        ),
    },
    "anthropic": {
        "POST /v1/messages": names(message_params.MessageCreateParams, but=headers),
        "POST /v1/messages/count_tokens": names(count_params.MessageCountTokensParams, but=headers),
        "message": names(beta.BetaMessageParam),
        "text block": names(beta.BetaTextBlockParam),
        "image block": names(beta.BetaImageBlockParam),
        "image source": names(beta.BetaBase64ImageSourceParam, beta.BetaURLImageSourceParam, beta.BetaFileImageSourceParam),
        "thinking block": names(beta.BetaThinkingBlockParam),
        "redacted thinking block": names(beta.BetaRedactedThinkingBlockParam),
        "tool use block": names(beta.BetaToolUseBlockParam),
        "tool result block": names(beta.BetaToolResultBlockParam),
        "tool reference block": names(beta.BetaToolReferenceBlockParam),
        "tool addition block": names(beta.BetaRequestToolAdditionBlockParam),
        "tool removal block": names(beta.BetaRequestToolRemovalBlockParam),
        "tool": names(beta.BetaToolParam),
        "tool choice": names(beta.BetaToolChoiceParam),
        "thinking": names(beta.BetaThinkingConfigParam),
        "output config": names(beta.BetaOutputConfigParam),
        "output config of a system message": names(beta.BetaSystemMessageOutputConfigParam),
        "cache control": names(beta.BetaCacheControlEphemeralParam),
        "metadata": names(beta.BetaMetadataParam),
        "diagnostics": names(beta.BetaDiagnosticsParam),
        "context management": names(beta.BetaContextManagementConfigParam),
        "caller": names(beta.BetaDirectCallerParam),
    },
    "ollama": {
        "generate": model(ollama.GenerateRequest),
        "chat": model(ollama.ChatRequest),
        "options": model(ollama.Options),
        "message": model(ollama.Message),
        "tool call": model(ollama.Message.ToolCall),
        "call's function": model(ollama.Message.ToolCall.Function),
        "tool": model(ollama.Tool),
        "tool's function": model(ollama.Tool.Function),
        "embed": model(ollama.EmbedRequest),
        "embeddings": model(ollama.EmbeddingsRequest),
        "create": [{"from_": "from"}.get(n, n) for n in model(ollama.CreateRequest)],  # that is how it is sent
        "pull": model(ollama.PullRequest),
        "push": model(ollama.PushRequest),
        "show": model(ollama.ShowRequest),
        "delete": model(ollama.DeleteRequest),
        "copy": model(ollama.CopyRequest),
    },
}))
