// Package llm writes summaries and condenses single tool results with a language model, through any
// endpoint with OpenAI's chat completions or through Anthropic's Messages API.
//
//	Writer.Write, Condense, …       a record in, a draft out; what does not fit is cut
//	  └ Budget                      caps on calls and cost of an hour
//	  └ endpoint                    shared: breaker, calls at a time, what the server asks to wait
//	      └ provider                one request in the form of the provider's API
//
// A call is tried three times, with waits that double. The content of a conversation is material
// for the model, never instructions: every prompt says so, even an operator's own, and no content
// can break out of the record.
//
// # The returned error is the contract
//
// Every error is an [Error], returned only after all retries of the call.
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
//	                          canceled        the context has ended                            stops, or continues without a model
//	  and ErrOverQuota        over_quota      no more calls or tokens for this tenant and hour     waits until NotBefore, without a deadline
//	  and ErrCapped           capped          no more calls or money for this hour             waits until NotBefore or its deadline, then extractive
//	summary.ErrUnusable       context_length  longer than the model takes, even a quarter      extractive at once, with the reason
//	                          cut_off         the answer ends at Profile.MaxTokens             the same
//	                          invalid         no JSON, fields missing, not the API's form      the same
//	                          empty           the answer says nothing                          the same
//	                          longer          the answer is longer than its input              the same
//	                          refused         the model or a filter refused                    the same
//	                          rejected        another HTTP 4xx                                 the same
//
// The unusable ones are not retried, because at temperature 0 a second call would pay again for the
// same answer. Only an insight is asked for once more, with the reason. They show that the endpoint works, so they close its breaker.
package llm
