// Package capture brings the transcripts that agents write into the log. It takes doorbells: a
// hook of an agent says that a session moved and which file records it, and the [Receiver]
// imports that file. A doorbell carries no content. The receiver also follows folders, so that it
// reads the files of agents whose hooks do not call, and older files.
//
//	hook ────Ring────▶ files waiting ──one worker──▶ importer ──▶ log
//	folder ──change──▶      ▲   ▲                       │
//	   └──walk──▶ history ──┘   └─ look again: 0.2 … 10 s ─┘
//
// # What is read
//
// Only regular files below the configured roots, after symbolic links are followed on both
// sides, whose names are those of the agent's transcripts. The format is the agent's own, so a
// doorbell can't bring events under the identities of another source. The transcripts of a
// Claude Code session's subagents, <session>/subagents/agent-*.jsonl beside
// <session>.jsonl, are read with their session's, up to 1,000 of them.
//
// # When it is read
//
// Each doorbell leads to a look at the file. A file that was imported completely, and whose size
// and modification time are the same, is not read again. A doorbell that rings while the file
// is read leads to one more look afterwards.
//
// A hook may fire before the agent's last lines are on disk, and even before the file exists.
// So the file is looked at again 0.2, 0.5, 1, 2, 5 and 10 seconds after each doorbell and each
// import. A session that writes at least every ten seconds is thus followed until it rests.
//
// The last message of a file may be incomplete. As with mneme import, it is left out until the
// next message or prompt begins or the file has not changed for two minutes; the receiver looks at that
// time too.
//
// A doorbell can say that the agent's turn has ended. The answer then comes two seconds later: if the
// file ends with an answer, a text without a call and without a part of a line, and did not change
// meanwhile. Changes more than a second after the doorbell belong to another turn, and so does
// everything after a doorbell that says that one begins. What was published never changes: should
// the message go on nevertheless, the log keeps its beginning and refuses the longer one, as after
// two minutes.
//
// # Folders
//
// A walk at the start compares each file of a followed folder with its mark: the file's state when
// it was last read. Files that changed within the last two minutes are queued as if they had
// rung. The others are history, which the worker reads, the oldest first, while no file is due.
// Marks are kept in a file, written once a minute at most, so a restart reads only what has changed. They belong to one log:
// with another one, all is read again, and the log drops what it has.
//
// From then on the system reports changes (inotify; not on macOS and the BSDs). Because reports
// can be lost, folders are also walked every minute; and every five seconds if the system reports
// nothing, if the limit of watches is reached, or if a folder does not exist yet. Walks follow no
// links.
//
// # What it costs
//
// A changed database is read from its last change on. Any other changed file is read from its
// start; its events' identities say which are new, as with any import. Reading a known transcript
// of 5 MB and 5,000 events again takes 0.4 s of one core (BenchmarkImportingAgain of package
// importer). After an import its file rests for four times as long as the import took, so that a
// large file whose agent rings often takes at most a fifth of one core.
//
// # States of a file
//
//	waiting   it rang, or a look is due
//	reading   the worker has it
//	idle      nothing is due; only its mark is kept
//
// If the log or the lookup fails, the file waits with growing pauses, up to 30 seconds, and is
// tried again until Close; the history does the same. A file that can't be read waits for the next
// change, doorbell or process. Everything that is kept is bounded. What a process has not imported
// when it ends is imported by the next one that follows the folder, or at the next doorbell for
// the same file.
package capture
