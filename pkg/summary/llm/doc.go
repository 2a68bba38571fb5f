// Package llm writes summaries by a language model and condenses single tool results: by
// any endpoint with the chat completions of OpenAI, or by the Messages API of Anthropic.
//
//	Writer.Write, Writer.Condense   a record in, a draft out; what does not fit is cut
//	  └ Budget                      caps on calls and cost of an hour
//	  └ endpoint                    shared: breaker, calls at a time, what the server asks to wait
//	      └ provider                one request in the form of the provider's API
//
// A call is tried three times, after waits that double. What a conversation holds is
// material for the model, never instructions: the prompt says so, also one of the
// operator's own, and the record cannot be left by what is in it.
//
// # The returned error is the contract
//
// Every error is an [Error]. Retries of the same call are over when it is returned.
//
//	error                     class           meaning                                          what the summarizer does
//	summary.ErrUnavailable    unreachable     no connection, or it broke                       waits, tries again until its deadline, then extractive
//	                          timeout         no answer within Profile.Timeout                 the same
//	                          rate_limited    HTTP 429                                         the same, not before NotBefore
//	                          server_error    HTTP 408, 409, 5xx                               the same, not before NotBefore
//	                          denied          HTTP 401 to 405, a redirect: key, account,       the same; shows the reason, which says what to check
//	                                          model or URL is wrong. Opens the breaker
//	                          breaker_open    not asked, five calls have failed or one         waits until NotBefore
//	                                          was denied
//	                          canceled        the context has ended                            stops, or goes on without a model
//	  and ErrCapped           capped          no more calls or money for this hour             waits until NotBefore or its deadline, then extractive
//	summary.ErrUnusable       context_length  longer than the model takes, even a quarter      extractive at once, with the reason
//	                          cut_off         the answer ends at Profile.MaxTokens             the same
//	                          invalid         no JSON, fields missing, not the API's form      the same
//	                          empty           the answer says nothing                          the same
//	                          longer          the answer is longer than its input              the same
//	                          refused         the model or a filter refused                    the same
//	                          rejected        another HTTP 4xx                                 the same
//
// Of the unusable ones a second call would be paid again for the same answer: the
// temperature is 0. They say that the endpoint works, and close its breaker.
package llm
