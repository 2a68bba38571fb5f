// Package extractive writes summaries without a model: it quotes the most important
// sentences and counts what was done. It needs no network, succeeds on every input that is
// not empty, and gives the same bytes for the same input.
//
// # Method
//
// A summary is a selection S of sentences within a limit of characters that covers the
// terms of its source as well as possible: the budgeted maximization of a submodular
// function of H. Lin and J. Bilmes (Multi-document Summarization via Budgeted Maximization
// of Submodular Functions, NAACL 2010), with terms as concepts (D. Gillick and B. Favre, A
// Scalable Global Model for Summarization, 2009):
//
//	f(S) = Σ weight(t) over the terms t that occur in S, each once
//
// It is maximized greedily. Next comes the sentence with the largest
//
//	prior · gain / length^0.5
//
// A covered term gains nothing, so nothing is said twice. The weight of a term is log2(1 +
// the number of messages it occurs in), doubled for file names, identifiers and numbers.
// The prior is the value of a sentence by its position and form, as in H. P. Edmundson (New
// Methods in Automatic Extracting, 1969): high for a user's request, the last message of a
// turn and a cue such as "root cause", low for announcements ("Let me look…") and
// questions.
//
// # Parts
//
//	Conversation  what the user asked and what came of it, in order: the newest and the first
//	              request always, then requests and the last messages of turns
//	Actions       computed from the calls: tools, files, programs and failures with counts, and
//	              the identifiers that come up in three entries or more
//	Findings      up to 5 further sentences, with cues and names of things preferred
//	Topics        up to 4 phrases that come back in many messages
//
// In a conversation among people, where nobody calls tools and speakers have names, all
// sentences count alike and Findings are statements about persons.
//
// A summary of summaries selects in the same way from the children's sentences; it parses
// their counts and adds them up.
package extractive
