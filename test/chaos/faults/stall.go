package faults

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

func init() { toxics.Register(Stall, new(stallToxic)) }

// A stallToxic is a partition as TCP has it: nothing gets through while it lasts, not
// even that one end has hung up, and what was sent meanwhile arrives late, once it is
// over. Toxiproxy's own timeout toxic drops what is sent, and hangs up in the end.
type stallToxic struct{}

// stalled is what one link has to deliver late.
type stalled struct {
	chunks []*stream.StreamChunk
	hungUp bool // behind the chunks
}

// NewState implements toxics.StatefulToxic.
func (*stallToxic) NewState() any { return new(stalled) }

// Pipe implements toxics.Toxic.
func (*stallToxic) Pipe(stub *toxics.ToxicStub) {
	late := stub.State.(*stalled)
	for {
		input := stub.Input
		if late.hungUp {
			input = nil
		}
		select {
		case chunk := <-input:
			late.hungUp = chunk == nil
			if chunk != nil {
				late.chunks = append(late.chunks, chunk)
			}
		case <-stub.Interrupt:
			return
		}
	}
}

// Cleanup implements toxics.CleanupToxic. It hangs up where nobody takes what is late:
// the other end is gone.
func (*stallToxic) Cleanup(stub *toxics.ToxicStub) {
	late := stub.State.(*stalled)
	for _, chunk := range late.chunks {
		if err := stub.WriteOutput(chunk, time.Second); err != nil {
			stub.Close()
			return
		}
	}
	if late.hungUp {
		stub.Close()
	}
}
