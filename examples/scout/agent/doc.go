// Package agent is a small agent that answers questions about a folder and records
// everything it does in mneme. Instead of a model it has a planner of plain code, so
// that the same folder and question give the same answer.
//
//	question ─▶ planner ─step─▶ loop ─call─▶ tools
//	               ▲             │  │           │
//	               └── result ───│──┴───────────┘
//	                             ▼
//	                         Recorder ──events──▶ the log
//
// Your own agent needs recorder.go: copy it, and call it as agent.go does. The other
// files are parts that your agent already has: a loop, a planner and tools.
package agent
