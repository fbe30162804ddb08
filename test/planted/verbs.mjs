/**
 * Bugs of native/fabric/verbs, for main.mjs. In each of them the code no longer handles one kind of behaviour
 * of a NIC, and a test on a simulated NIC must find it. The bugs are in the plug-in, which nic_test loads.
 */
const program = 'nic_test';
const library = 'rdma_rpc_verbs';

export const verbsBugs = [
  {
    name: 'windows that cannot be bound are used, because the driver promises them',
    file: 'fabric/verbs/device.cc',
    from: '  if (trial.why_no_windows.empty()) return;\n',
    to: '  return;\n',
    caughtBy: 'Trial.WindowsThatCannotBeBoundAreNotUsed',
  },
  {
    name: 'inline data is used although the library ignores its flag',
    file: 'fabric/verbs/device.cc',
    from: '    can.max_inline = 0;\n',
    to: '',
    caughtBy: 'Trial.AnInlineFlagThatIsIgnoredIsNotUsed',
  },
  {
    name: 'an inline size that is no power of two is rounded down',
    file: 'fabric/verbs/probe.cc',
    from: '*inline_bytes = taken;',
    to: '*inline_bytes = taken & 0x60;',
    caughtBy: 'Trial.FindsTheLargestInlineSize',
  },
  {
    name: 'shared receives are used on a device without them',
    file: 'fabric/verbs/probe.cc',
    from: '    if (SrqPtr(ibv_create_srq(pd, &init)) != nullptr)\n',
    to: '',
    caughtBy: 'SharedReceives.ThatCannotBeMadeAreNotUsed',
  },
  {
    name: 'each queue pair takes all READs of the device',
    file: 'fabric/verbs/device.cc',
    from: 'if (of_device <= 0) return',
    to: 'if (of_device != 0) return',
    caughtBy: 'Budget.OfReadsIsSharedByAllQueuePairs',
  },
  {
    name: 'the READs of a queue pair that has gone stay reserved',
    file: 'fabric/verbs/queue/queue_pair.cc',
    from: '  device_.return_reads(address_.reads);\n',
    to: '',
    caughtBy: 'Budget.OfReadsIsGivenBack',
  },
  {
    name: 'the event of the last shared receive ends nothing',
    file: 'fabric/verbs/queue/queue_pair.cc',
    from: '  has_ended();\n}\n\n/// Fails',
    to: '}\n\n/// Fails',
    caughtBy: 'EndOfAQueuePair.IsNoticedByTheEventOfItsLastReceive',
  },
  {
    name: 'hundreds of queue pairs are destroyed in one poll',
    file: 'fabric/verbs/queue/completion_queue.cc',
    from: 'constexpr std::uint32_t kFinishedAtOnce = 32;',
    to: 'constexpr std::uint32_t kFinishedAtOnce = 100000;',
    caughtBy: 'ManyConnectionsThatEnd.GiveFewCommandsAtOnce',
  },
  {
    name: 'events of a completion queue are not acknowledged before it is destroyed',
    file: 'fabric/verbs/queue/completion_queue.cc',
    from: 'if (device_cq->events > 0) ibv_ack_cq_events(device_cq->cq.get(), device_cq->events);',
    to: '(void)device_cq;',
    caughtBy: 'Nic/OneOfEachKind.IsCarriedAndLeavesNothingBehind/bnxt_re',
  },
  {
    name: 'a completion queue is given to more queue pairs than it has entries for',
    file: 'fabric/verbs/queue/completion_queue.cc',
    from: '!device_cq->failed && device_cq->entries - device_cq->used >= entries + more',
    to: '!device_cq->failed',
    caughtBy: 'CompletionQueueOfManyQueuePairs.NeverOverruns',
  },
  {
    name: 'a completion queue that cannot be polled counts as empty',
    file: 'fabric/verbs/queue/completion_queue.cc',
    from: '    if (got < 0) {\n      lose(device_cq, got);\n      break;\n    }\n',
    to: '    if (got < 0) break;\n',
    caughtBy: 'CompletionQueueThatCannotBePolled.EndsItsQueuePairsAndTheirRequests',
  },
  {
    name: 'a region is deregistered while a window is bound to it',
    file: 'fabric/verbs/memory.cc',
    from: '  if (windows_bound > 0) windows_.free_those_on(*this);\n',
    to: '',
    caughtBy: 'Region.ThatGoesFirstTakesItsWindowsAlong',
  },
  {
    name: 'the packets of a lost link are not sent again',
    file: 'fabric/verbs/connect/sideband_connection.cc',
    from: 'attr.retry_cnt = device_.options().retry_count;',
    to: 'attr.retry_cnt = 0;',
    caughtBy: 'Link.ThatIsLostForLessThanAllRetriesIsNotNoticed',
  },
  {
    name: 'the option ackTimeout is ignored',
    file: 'fabric/verbs/connect/sideband_connection.cc',
    from: 'attr.timeout = device_.options().ack_timeout;',
    to: 'attr.timeout = 14;',
    caughtBy: 'Link.ThatIsLostForASecondIsSurvivedWithALongerTimeout',
  },
  {
    name: 'a peer that loads a page is not asked again',
    file: 'fabric/verbs/connect/sideband_connection.cc',
    from: 'attr.rnr_retry = rnr_retries(device_.options(), peer_);',
    to: 'attr.rnr_retry = 0;',
    caughtBy: 'Link.ToAPeerThatLoadsAPageIsAskedAgain',
  },
  {
    name: 'a new connection has the MTU of the time when the device was opened',
    file: 'fabric/verbs/port.cc',
    from: '  port->address.mtu = static_cast<std::uint8_t>(attr.active_mtu);',
    to: '  if (port->address.mtu == 0) port->address.mtu = static_cast<std::uint8_t>(attr.active_mtu);',
    caughtBy: 'Link.WithASmallerMtuEndsOneConnectionAndTheNextFits',
  },
  {
    name: 'a driver that refuses relaxed ordering gets no memory',
    file: 'fabric/verbs/memory.cc',
    from: '    mr_.reset(ibv_reg_mr(pd_, addr_, length_, access_));\n',
    to: '    mr_.reset();\n',
    caughtBy: 'Registered.InOrderWhereTheDriverRefusesOptionalFlags',
  },
  {
    name: 'memory for atomics is registered with relaxed ordering',
    file: 'fabric/verbs/device.cc',
    from: 'options_.relaxed_ordering && (access & access_remote_atomic) == 0;',
    to: 'options_.relaxed_ordering;',
    caughtBy: 'Registered.ForAtomicsInOrder',
  },
  {
    name: 'queue pairs are always in the default partition',
    file: 'fabric/verbs/queue/queue_pair.cc',
    from: '  attr.pkey_index = device_.options().pkey_index;\n',
    to: '',
    caughtBy: 'Partition.IsTheOneOfTheOption',
  },
  {
    name: 'an event of a GID that has moved is ignored, and the next connection looks at nothing',
    file: 'fabric/verbs/device.cc',
    from: '  verbs::refresh_port(context_.get(), options_, &port_);\n',
    to: '',
    caughtBy: 'PortThatChanges.TakesTheAddressThatItHasNow',
  },
].map((bug) => ({ program, library, ...bug }));
