// A queue pair is one connection, from the address blobs to its end. Each part with a state of its own is a
// class: the queues of the user, the batch of frames that is being sent, READs of the peer, the incoming
// frame, and the path. The two states below, and what they allow, belong to this class. The class is defined
// in five files: queue_pair.cc (creation, connecting, end), posting.cc (requests of the user), sending.cc
// (frames out), receiving.cc (bytes in) and frames.cc (the effect of each frame). Receiving and sending
// belong to one class. An incoming frame causes an ack, answers or a refusal, and a send may end the
// connection for both directions. Two classes would call each other at every step. This code runs on the
// device's thread.
//
// Reading never waits for writing. Each incoming frame is executed or refused at once. At most a few frames
// wait to be sent then: an ack, kReadsMax READ responses, and one refusal. Therefore two sides that only
// write do not block each other.
//
// Two state variables describe the two directions of a connection in RTS. In ERR the queue pair has no
// socket.
//
//   In       | a frame arrives | a frame is not | the responses     | the peer sends | the socket has
//            |                 | allowed        | before a refusal  | "gone"         | no more to read
//            |                 |                | are sent          |                |
//   ---------+-----------------+----------------+-------------------+----------------+----------------
//   hears    | executes it     | -> refuses     |                   | -> gone        | ERR
//   refuses  | stays unread    |                | -> deaf, or ERR   | stays unread   | stays unread
//   deaf     | discards it     |                |                   | discards it    | -> gone
//   gone     | no socket: the next request of this side fails, and then it is in ERR
//
//   Out      | the socket has no room | it has room again | it takes nothing any more
//   ---------+------------------------+-------------------+---------------------------
//   free     | -> blocked             |                   | -> broken
//   blocked  |                        | -> free           | (only a send shows it)
//   broken   | In goes on until nothing is left to read; `refuses` ends at once, as if it were sent
//
// A refusal of a message that found no receive leads to `deaf`. Every other refusal leads to ERR.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/software/receive_ring.h"
#include "fabric/tcp/connect/dialer.h"
#include "fabric/tcp/connect/listener.h"
#include "fabric/tcp/device.h"
#include "fabric/tcp/queue/completion_queue.h"
#include "fabric/tcp/queue/frame_batch.h"
#include "fabric/tcp/queue/incoming.h"
#include "fabric/tcp/queue/path_progress.h"
#include "fabric/tcp/queue/path_watch.h"
#include "fabric/tcp/queue/peer_reads.h"
#include "fabric/tcp/queue/send_queue.h"

namespace rdma_rpc::fabric::tcp {

class QueuePair final : public fabric::QueuePair {
 public:
  QueuePair(Device& device, CompletionQueue& cq, const QpOptions& options, std::uint32_t qp_num,
            const Address& address);
  ~QueuePair() override;

  QpState state() const override { return state_; }
  std::vector<std::byte> local_address() const override { return encode(address_); }
  void set_first_words(const FirstWords& words) override { words_ = words; }
  std::string connect(std::span<const std::byte> remote_address) override;
  std::string error() const override { return error_; }
  std::size_t post_send(std::span<const SendWr> requests) override;
  std::size_t post_recv(std::span<const RecvWr> requests) override;
  bool revoke(std::uint32_t rkey) override;
  bool abandon_reads(std::uint64_t addr, std::uint64_t bytes) override {
    sends_.abandon_reads(addr, bytes);
    return true;
  }
  std::uint64_t unsent_write_bytes() const override { return sends_.unsent_write_bytes(); }
  std::uint64_t read_bytes_arrived() const override { return read_bytes_arrived_; }
  std::optional<PathProgress> path_progress() const override {
    return socket_ ? tcp::path_progress(socket_.get(), stream_bytes_) : std::nullopt;
  }
  /// Messages and READ responses share one stream of bytes and one completion ring.
  bool may_hold_messages(std::uint64_t) const override { return false; }
  void to_error() override;

  const Token& token() const { return address_.token; }

  // The following members are for the listener, the acceptor and the dialer.
  /// Accepts, keeps or rejects a connection that has arrived for this queue pair.
  void take(IncomingConnection incoming);
  void connected(UniqueFd fd);
  /// Goes to ERR for a reason that no completion reports.
  void fail(std::string why);

  // The following members are for the device.
  /// Checks whether sent bytes arrive, and ends the queue pair when they do not arrive. Returns whether to
  /// check again.
  bool check_path(PathWatch::Clock::time_point now);
  bool asks_for_path() const { return path_.asks(); }

  // The following members are for the completion queue.
  /// Records that the socket is ready. `ends` is set when the readable bytes are followed by the end of the
  /// connection.
  void note_ready(bool readable, bool writable, bool ends);
  void turn();
  bool is_blocked() const { return out_ != Out::free; }
  void polled(bool receive, std::uint64_t send_end, std::uint32_t count);

 private:
  /// The treatment of incoming frames. See the table above.
  enum class In : std::uint8_t { hears, refuses, deaf, gone };
  /// Tells whether the socket accepts bytes.
  enum class Out : std::uint8_t { free, blocked, broken };
  /// A request of the peer that is refused. The refusal is sent behind the responses to earlier requests.
  struct Refusal {
    std::uint32_t number = 0;
    WcStatus status = WcStatus::success;   ///< reported to the peer
    WcStatus receive = WcStatus::success;  ///< status of the oldest receive, when the refusal makes it fail
  };

  /// Kinds of frames by priority: the first kind that can be sent is the next one (next_frame()).
  enum class FrameKind : std::uint8_t {
    none,
    refusal,   ///< refusal of a request of the peer
    ack,       ///< acknowledgement of requests of the peer
    question,  ///< a request without payload, sent only to get its ack
    request,   ///< a small request, or one part of a larger one
    answer,    ///< one part of the response to a READ of the peer
  };
  /// State of the next request in the send queue.
  enum class NextRequest : std::uint8_t {
    waits,      ///< the queue is empty, or its next request may not be sent yet
    small,      ///< fits in one frame
    bulk,       ///< needs several frames, or a long one, and no frame has been sent
    under_way,  ///< some of its frames have been sent, and no other request may come between them
  };
  /// Tells whether to send a separate ack now, or to wait for a frame that can carry the ack.
  enum class LoneAck : std::uint8_t { now, later };
  /// Acknowledgements that are still to be sent or requested.
  struct Acks {
    bool owed = false;  ///< an ack must be sent to the peer
    /// A completion on this side will have to wait for earlier requests, so the next request asks for an ack.
    bool wanted = false;
    bool question = false;  ///< a completion waits already, and no request in flight asks for an ack
    bool features = false;  ///< the peer has asked what this side supports; the answer is sent before the ack
    bool asks() const { return wanted || question; }
    /// Records that a request has asked for an ack.
    void asked() { wanted = question = false; }
  };

  // queue_pair.cc
  const Token& own_word() const { return words_ ? words_->own : address_.token; }
  void welcome(IncomingConnection incoming);
  void reject(IncomingConnection incoming);
  void lost(const std::string& why);
  void peer_is_gone();
  /// `last_word` is Op::gone or Op::bye; `refusal` is sent before it.
  void enter_error(Op last_word, const Header* refusal = nullptr);
  void part(Op last_word, const Header* refusal = nullptr);
  void say_what_waits();
  void close_socket();
  void flush_queues();
  void wants_turn();

  // posting.cc
  bool coalesces(std::span<const SendWr> posted);
  void carry_out_local();
  void retire();
  void complete_send(const SendSlot& slot, WcStatus status);
  void complete_receive(Wc wc);

  // sending.cc
  void flush();
  bool form();
  NextRequest next_request();
  void look_at_features();
  FrameKind next_frame(LoneAck ack);
  bool add(FrameKind kind);
  bool has_more(LoneAck ack) { return next_frame(ack) != FrameKind::none; }
  void add_request();
  void add_question();
  void add_answer();
  void add_atomic(const SendSlot& slot);
  void add_atomic_answer();

  // receiving.cc
  /// Returns false while a refusal waits to be sent, because reading waits then, too.
  bool may_read() const { return readable_ && (in_ != In::refuses || out_ == Out::broken); }
  void read();
  std::size_t landing(iovec* to);
  void take_bytes(const std::byte* from, std::size_t bytes);
  void landed(std::size_t bytes);

  // frames.cc
  void frame_begins();
  void frame_ends();
  /// Returns whether the frame is allowed at its position. Ends the connection when it is not allowed.
  bool is_in_place();
  void send_begins();
  void send_ends();
  void write_begins();
  void write_ends();
  void read_asked();
  void atomic_begins();
  void atomic_ends();
  void data_begins();
  void data_ends();
  void carried_out();
  /// Returns whether the rest of the frame's payload may be written to its destination.
  bool may_be_written(std::uint64_t bytes) const;
  void refuse(std::uint32_t number, WcStatus status, WcStatus receive = WcStatus::success);
  void conclude_refusal();
  void broke_protocol(const char* how);

  Device& device_;
  CompletionQueue& cq_;
  const QpOptions options_;
  const Address address_;
  QpState state_ = QpState::init;
  std::string error_;

  // Members for connecting:
  std::unique_ptr<Dialer> dialer_;
  class AcceptTimeout;
  std::unique_ptr<AcceptTimeout> accept_timeout_;  ///< passive side: limits the wait for the peer
  IncomingConnection early_connection_;            ///< a connection that arrived before connect() was called
  Token peer_{};                                   ///< token in the peer's connect message
  std::optional<FirstWords> words_;
  UniqueFd socket_;
  StreamBytes stream_bytes_;
  bool enqueued_ = false;

  SendQueue sends_;
  software::ReceiveRing receives_;

  // Members for sending:
  FrameBatch batch_;
  PathWatch path_;
  Out out_ = Out::free;
  bool answer_next_ = false;  ///< when a bulk request and a READ response both wait, the response is next
  Acks acks_;
  bool asks_for_features_ = false;  ///< the next question asks for the peer's features
  bool lacks_feature_ = false;      ///< a request has failed because the peer does not support it
  std::uint32_t coalesced_ = 0;     ///< number of messages posted since the last flush() that wait for more
  int send_error_ = 0;              ///< why the socket accepts nothing any more
  PeerReads peer_reads_;
  Refusal refusal_;

  // Members for receiving:
  In in_ = In::hears;
  bool readable_ = false;
  /// The end of the connection has been announced, so reading continues even after a short read.
  bool reads_to_end_ = false;
  Incoming incoming_;
  AtomicOperands operands_{};  ///< operands of the atomic that is being received
  std::uint64_t read_bytes_arrived_ = 0;
};

}  // namespace rdma_rpc::fabric::tcp
