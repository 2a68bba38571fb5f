// Package extractive writes summaries without a model: it quotes the sentences that
// matter most and counts what was done. It needs no network, cannot fail on an input
// that holds anything, and gives the same bytes for the same input.
//
// # Method
//
// A summary is a selection S of sentences within a limit of characters that covers the
// terms of what it summarises as well as it can: the budgeted maximisation of a
// submodular function of H. Lin and J. Bilmes (Multi-document Summarization via Budgeted
// Maximization of Submodular Functions, NAACL 2010), with terms as concepts (D. Gillick
// and B. Favre, A Scalable Global Model for Summarization, 2009):
//
//	f(S) = Σ weight(t) over the terms t that occur in S, each once
//
// It is maximised greedily: next comes the sentence with the largest
//
//	prior · gain / length^0.5
//
// A term that is covered already gains nothing, so nothing is said twice. The weight of
// a term is log2(1 + the messages it occurs in), doubled for file names, identifiers and
// numbers. The prior is what the sentence's place and form say of its worth, as in
// H. P. Edmundson (New Methods in Automatic Extracting, 1969): a request of the user, the
// last word of a turn, a cue such as "root cause"; less for announcements ("Let me
// look…") and questions.
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
// In a conversation between people, where nobody calls tools and speakers have names,
// everybody's sentences count alike and Findings are what is said about persons.
//
// A summary of summaries is made by the same selection over the children's sentences;
// their counts are read back and added up.
package extractive
