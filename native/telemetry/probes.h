// Defines the USDT probes, for bpftrace, perf and systemtap. Each probe is a no-op instruction and a note in
// the binary. The note contains the address of the instruction and the places of its arguments at that point.
// Without a tracer a probe costs only the instruction. The notes have the format of sys/sdt.h (owner
// "stapsdt", type 3). The notes are written here without that header, which would be one more dependency of
// the build. recorder.h calls this code. docs/guides/trace.md describes the arguments.
#pragma once

#include <cstdint>

// Content of a note: two lengths, type and owner; then the addresses of the probe, of a section from which
// tools compute the load offset of the binary, and of a semaphore (0, because there is none); then provider,
// name, and arguments as BYTES@PLACE. The flag "?" makes the note follow the section group of its function.
#define RDMA_RPC_NOTE(name, arguments, ...)                                   \
  __asm__ volatile(                                                           \
      "990: nop\n"                                                            \
      ".pushsection .note.stapsdt,\"?\",\"note\"\n"                           \
      ".balign 4\n"                                                           \
      ".4byte 992f-991f, 994f-993f, 3\n"                                      \
      "991: .asciz \"stapsdt\"\n"                                             \
      "992: .balign 4\n"                                                      \
      "993: .8byte 990b, _.stapsdt.base, 0\n"                                 \
      ".asciz \"rdma_rpc\"\n.asciz \"" name                                   \
      "\"\n"                                                                  \
      ".asciz \"" arguments                                                   \
      "\"\n"                                                                  \
      "994: .balign 4\n"                                                      \
      ".popsection\n"                                                         \
      ".ifndef _.stapsdt.base\n"                                              \
      ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
      ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                        \
      "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"                   \
      ".popsection\n"                                                         \
      ".endif\n"                                                              \
      :                                                                       \
      : __VA_ARGS__)

#if defined(__x86_64__)
// The operand may be a constant, memory or a register, wherever the argument already is.
#define RDMA_RPC_ARGUMENT(value) "nor"(value)
#define RDMA_RPC_PLACE(number) "4@%k" #number
#elif defined(__aarch64__)
#define RDMA_RPC_ARGUMENT(value) "r"(value)
#define RDMA_RPC_PLACE(number) "4@%x" #number
#else
#undef RDMA_RPC_NOTE
#define RDMA_RPC_NOTE(...) static_cast<void>(0)
#define RDMA_RPC_ARGUMENT(value) value
#define RDMA_RPC_PLACE(number) ""
#endif
#define RDMA_RPC_PLACES3 RDMA_RPC_PLACE(0) " " RDMA_RPC_PLACE(1) " " RDMA_RPC_PLACE(2)
#define RDMA_RPC_PLACES4 RDMA_RPC_PLACES3 " " RDMA_RPC_PLACE(3)
#define RDMA_RPC_PLACES5 RDMA_RPC_PLACES4 " " RDMA_RPC_PLACE(4)

namespace rdma_rpc::telemetry::probes {

using Word = std::uint32_t;

/// Fires when a batch was handed to the device, which accepted `taken` of the `prepared` requests.
inline void post(Word session, Word taken, Word prepared) {
  RDMA_RPC_NOTE("post", RDMA_RPC_PLACES3, RDMA_RPC_ARGUMENT(session), RDMA_RPC_ARGUMENT(taken),
                RDMA_RPC_ARGUMENT(prepared));
}
/// Fires when a request to send, READ or WRITE has completed, and with it all requests before it. `status` is
/// 0 on success.
inline void completion(Word session, Word status, Word sequence) {
  RDMA_RPC_NOTE("completion", RDMA_RPC_PLACES3, RDMA_RPC_ARGUMENT(session), RDMA_RPC_ARGUMENT(status),
                RDMA_RPC_ARGUMENT(sequence));
}
inline void frame_in(Word session, Word type, Word call, Word bytes) {
  RDMA_RPC_NOTE("frame_in", RDMA_RPC_PLACES4, RDMA_RPC_ARGUMENT(session), RDMA_RPC_ARGUMENT(type),
                RDMA_RPC_ARGUMENT(call), RDMA_RPC_ARGUMENT(bytes));
}
inline void frame_out(Word session, Word type, Word call, Word bytes) {
  RDMA_RPC_NOTE("frame_out", RDMA_RPC_PLACES4, RDMA_RPC_ARGUMENT(session), RDMA_RPC_ARGUMENT(type),
                RDMA_RPC_ARGUMENT(call), RDMA_RPC_ARGUMENT(bytes));
}
/// Fires when the peer has been given a key to memory of this side.
inline void grant(Word session, Word key, Word bytes) {
  RDMA_RPC_NOTE("grant", RDMA_RPC_PLACES3, RDMA_RPC_ARGUMENT(session), RDMA_RPC_ARGUMENT(key),
                RDMA_RPC_ARGUMENT(bytes));
}
/// Fires when a call has ended on this side. `time` is the time since the call's request, in units of 256 ns.
inline void settle(Word session, Word call, Word method, Word good, Word time) {
  RDMA_RPC_NOTE("settle", RDMA_RPC_PLACES5, RDMA_RPC_ARGUMENT(session), RDMA_RPC_ARGUMENT(call),
                RDMA_RPC_ARGUMENT(method), RDMA_RPC_ARGUMENT(good), RDMA_RPC_ARGUMENT(time));
}

}  // namespace rdma_rpc::telemetry::probes
