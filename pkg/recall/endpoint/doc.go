// Package endpoint embeds texts by a model behind an HTTP endpoint with the embeddings of
// OpenAI: OpenAI itself, Ollama, TEI, vLLM, llama.cpp and others.
//
// Each text is paid for once: vectors are kept in a cache by tenant, model and text.
// Behind five failures in a row a breaker answers for the endpoint, until it has let one
// call through after half a minute.
//
//	error                    meaning                                               what to do
//	projection.ErrRejected   the model takes others but not this text              go on without its vector
//	any other                the endpoint does not answer, or not as it should:    try again later
//	                         the text says which, and what to check
package endpoint
