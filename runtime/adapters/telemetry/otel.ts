/**
 * `rdma-rpc/otel`: spans of calls, their context across processes, durations of calls, and the addresses of
 * channels. It uses the API of OpenTelemetry, which is an optional peer dependency. The same interceptor
 * works for clients and servers. Attributes and names follow the semantic conventions for RPC.
 */
import {
  type Attributes,
  type Context,
  context,
  type Histogram,
  type MeterProvider,
  metrics,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapPropagator,
  type TextMapSetter,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { clockMs } from '../../clock.ts';
import { type ContextKey, createContextKey } from '../../core/context-values.ts';
import { RpcError } from '../../core/errors/rpc-error.ts';
import type { StatusName } from '../../core/errors/status.ts';
import { disown } from '../../core/foreign.ts';
import type { Interceptor, RpcRequest } from '../../core/interceptor.ts';
import type { Metadata } from '../../core/metadata.ts';
import { durationBounds, type Observer, observedCall } from './observed-call.ts';

export type { ChannelAddresses } from './counted-addresses.ts';
export { type ObserveAddressesOptions, observeAddresses } from './otel-addresses.ts';

export interface OpenTelemetryOptions {
  /** Default: the global tracer provider. The next two options have global defaults, too. */
  tracerProvider?: TracerProvider;
  meterProvider?: MeterProvider;
  /**
   * Writes the context into the metadata of requests. The SDK's default uses the keys `traceparent`,
   * `tracestate` and `baggage`.
   */
  propagator?: TextMapPropagator;
  /** Returns further attributes of a call's span. Runs at the start of the call. */
  attributes?: (request: RpcRequest) => Attributes;
}

const scope = 'rdma-rpc';
const system = 'rdma_rpc';
/**
 * Statuses that are errors on a server. Other statuses, such as NOT_FOUND, are valid answers there. On a
 * client every status except OK is an error.
 */
const serverErrors: ReadonlySet<StatusName> = new Set<StatusName>([
  'UNKNOWN',
  'DEADLINE_EXCEEDED',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
]);

/**
 * The OpenTelemetry context of the handler. The handler's calls use it when no context manager preserves the
 * context across `await`.
 */
const handlerContext: ContextKey<Context | undefined> = createContextKey<Context | undefined>(
  undefined,
  'OpenTelemetry context',
);

const getter: TextMapGetter<Metadata> = {
  keys: (metadata) => [...metadata].map(([key]) => key),
  get(metadata, key) {
    const values = metadata.getAll(key).filter((value) => typeof value === 'string');
    return values.length > 1 ? values : values[0];
  },
};
const setter: TextMapSetter<Metadata> = { set: (metadata, key, value) => void metadata.set(key, value) };

/** Number of peers whose attributes are cached. */
const knownPeersMax = 1024;
const knownPeers = new Map<string, Attributes>();

/** Returns the attributes of a request's peer, which are computed once per peer. */
function peerAttributes({ side, peer }: RpcRequest): Attributes {
  let attributes = knownPeers.get(side + peer);
  if (attributes === undefined) {
    attributes =
      side === 'client' ? addressOf(peer, 'server') : addressOf(peer.replace(/ \(.*\)$/, ''), 'client');
    if (knownPeers.size >= knownPeersMax) knownPeers.clear();
    knownPeers.set(side + peer, attributes);
  }
  return attributes;
}

/** Splits `host:port`. Keeps a path or a list of addresses unchanged. */
function addressOf(peer: string, side: string): Attributes {
  const name = peer.replace(/^(unix:|dns:\/\/\/)/, '');
  const [, host, port] = /^\[?([^,]*?)\]?:(\d+)$/.exec(name) ?? [];
  if (host === undefined) return { [`${side}.address`]: name };
  return { [`${side}.address`]: host, [`${side}.port`]: Number(port) };
}

class ObservedSpan implements Observer {
  readonly #request: RpcRequest;
  readonly #span: Span;
  readonly #context: Context;
  readonly #duration: Histogram;
  readonly #attributes: Attributes;
  readonly #startedMs = clockMs();

  constructor(request: RpcRequest, span: Span, active: Context, duration: Histogram, attributes: Attributes) {
    this.#request = request;
    this.#span = span;
    this.#context = active;
    this.#duration = duration;
    this.#attributes = attributes;
  }

  run<T>(part: () => T): T {
    return context.with(this.#context, part);
  }

  done(status: StatusName, error: unknown): void {
    const span = this.#span;
    const ended: Attributes = { 'rpc.response.status_code': status };
    const bad = this.#request.side === 'server' ? serverErrors.has(status) : status !== 'OK';
    if (bad) {
      ended['error.type'] = status;
      const message = error instanceof RpcError ? error.rawMessage : error === undefined ? '' : String(error);
      span.setStatus({ code: SpanStatusCode.ERROR, message });
      if (error instanceof Error && !(error instanceof RpcError)) span.recordException(error);
    }
    span.setAttributes(ended);
    const seconds = (clockMs() - this.#startedMs) / 1000;
    this.#duration.record(seconds, { ...this.#attributes, ...ended }, this.#context);
    disown<unknown>(span.end());
  }
}

/**
 * The instruments of the interceptor. The instruments are created at the first call, so that a provider may
 * be registered after the interceptor was made.
 */
interface Instruments {
  readonly tracer: Tracer;
  readonly client: Histogram;
  readonly server: Histogram;
}

function instruments(options: OpenTelemetryOptions): Instruments {
  const meter = (options.meterProvider ?? metrics).getMeter(scope);
  const duration = (side: string) =>
    meter.createHistogram(`rpc.${side}.call.duration`, {
      description: `Duration of calls, on the ${side}`,
      unit: 's',
      advice: { explicitBucketBoundaries: [...durationBounds] },
    });
  return {
    tracer: disown((options.tracerProvider ?? trace).getTracer(scope)),
    client: duration('client'),
    server: duration('server'),
  };
}

/**
 * Returns an interceptor for a server (`use`), a channel or a client. As the outermost interceptor it also
 * measures the other interceptors.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Interceptor {
  let ready: Instruments | undefined;

  function begin(request: RpcRequest): ObservedSpan {
    ready ??= instruments(options);
    const propagator = options.propagator ?? propagation;
    const client = request.side === 'client';
    const peer = peerAttributes(request);
    // The attributes do not contain the peer, because a server has too many clients for a metric.
    const attributes: Attributes = {
      'rpc.system.name': system,
      'rpc.method': request.method.fullName,
      ...(client ? peer : undefined),
    };

    let parent = context.active();
    if (!client) parent = disown(propagator.extract(ROOT_CONTEXT, request.metadata, getter));
    else if (trace.getSpan(parent) === undefined) parent = request.values.get(handlerContext) ?? parent;

    const kind = client ? SpanKind.CLIENT : SpanKind.SERVER;
    const spanAttributes = { ...attributes, ...peer, ...disown(options.attributes?.(request)) };
    const span = ready.tracer.startSpan(
      request.method.fullName,
      { kind, attributes: spanAttributes },
      parent,
    );
    const active = trace.setSpan(parent, span);
    if (client) disown<unknown>(propagator.inject(active, request.metadata, setter));
    else request.values.set(handlerContext, active);
    return new ObservedSpan(request, span, active, client ? ready.client : ready.server, attributes);
  }

  return (next) => (request) => observedCall(next, request, () => begin(request));
}
