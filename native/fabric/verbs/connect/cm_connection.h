// One queue pair's way to its peer by rdma_cm. The queue pair exists before and is moved through its states
// here (by the kernel on iWARP), so that receives are posted in time. On the device's thread.
//
// rdma_cm repeats a message that was lost after four seconds only, so the active side asks again earlier,
// with another id, and the passive one takes the newest request. The queue pairs stay as they are: the
// numbers of their first packets are in the address blobs. On iWARP the handshake is TCP's, which repeats by
// itself.
#pragma once

#include <memory>
#include <string>

#include "fabric/verbs/connect/attempts.h"
#include "fabric/verbs/connect/cm_objects.h"
#include "fabric/verbs/connect/connection.h"
#include "fabric/verbs/connect/connection_manager.h"

namespace rdma_rpc::fabric::verbs {

class QueuePair;

/// What an active side sends with its request: whom it wants, and who it is.
struct Greeting {
  static constexpr std::uint32_t kMagic = 0x43565252;  // "RRVC"
  std::uint32_t magic = kMagic;
  Token passive{}, active{};
};

class CmConnection final : public Connection {
 public:
  CmConnection(ConnectionManager& manager, Attempts& attempts, QueuePair& qp);
  ~CmConnection() override;
  CmConnection(const CmConnection&) = delete;
  CmConnection& operator=(const CmConnection&) = delete;

  std::string start(const Address& peer) override;
  bool busy() const override { return thread_ != nullptr; }
  void disconnect() override;
  /// The peer's last message of the handshake may be lost.
  void data_came() override;
  /// In the order that rdma_cm needs.
  void close(QueueObjects queue) override;
  void call_returned() override;
  void expire() override;

  // For the connection manager.
  void handle(rdma_cm_event_type event, int status);
  /// A peer's request. True when it is for this queue pair, which then owns `id`.
  bool offer(const Greeting& greeting, IdPtr& id);

 private:
  enum class Phase : std::uint8_t {
    idle,        ///< start() was not called
    waiting,     ///< passive: for the request
    resolving,   ///< active: the peer's address, then the route
    connecting,  ///< active: for the answer
    accepting,   ///< passive: for the last message
    up,
    down,
  };

  /// Sets the timer: for the end of the attempt, or before that to ask again.
  void set_timer();
  std::string resolve();
  std::string connect();
  std::string accept();
  Token active_word() const;
  void wait_again();
  std::string move_to(ibv_qp_state state);
  std::string move_to_rts();
  rdma_conn_param parameters() const;
  std::string refused(int status) const;
  std::string peer_name() const;
  int time_left_ms() const;
  void up();
  void fail(const std::string& why);
  void end(Phase phase);
  void abandon(QueueObjects queue);
  /// Destroys the id of a connection that is over, in the connection manager's time. (A request that is under
  /// way must end at once: the peer would take it for the newest one.)
  void let_go();

  ConnectionManager& manager_;
  Attempts& attempts_;
  QueuePair& qp_;
  Address peer_;
  Phase phase_ = Phase::idle;
  Attempts::Clock::time_point limit_;
  Greeting greeting_;
  Token asked_by_{};  ///< who made the request that came before start()
  IdPtr id_;
  std::shared_ptr<ConnectThread> thread_;
  bool ready_ = false;     ///< passive: the queue pair is in RTS
  bool answered_ = false;  ///< the connection is there, though rdma_connect() may not have returned yet
};

}  // namespace rdma_rpc::fabric::verbs
