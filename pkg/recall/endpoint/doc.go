// Package endpoint embeds texts with a model behind an HTTP endpoint that has OpenAI's embeddings
// API: OpenAI itself, Ollama, TEI, vLLM, llama.cpp and others.
//
// Each text is paid for once: a cache keeps vectors by tenant, model and text. After five failures
// in a row a breaker rejects calls for half a minute, then lets one through as a test.
//
//	error                    meaning                                               what to do
//	projection.ErrRejected   the model takes others but not this text              continue without its vector
//	any other                the endpoint does not answer, or not as it should:    try again later
//	                         the text says which, and what to check
package endpoint
