/** Services of a server that share interceptors. `server.scope(...)` creates it. */
import type { ServiceDefinition } from '../codec/types.ts';
import { checkedInterceptors, type Interceptor } from '../core/interceptor.ts';
import type { Handlers } from '../core/types.ts';
import type { ServiceScope } from './server-type.ts';

type AddWith = (
  interceptors: readonly Interceptor[],
  definition: ServiceDefinition,
  handlers: object,
) => void;

export class ScopedServices implements ServiceScope {
  readonly #interceptors: readonly Interceptor[];
  readonly #addWith: AddWith;

  constructor(interceptors: readonly Interceptor[], addWith: AddWith) {
    this.#interceptors = interceptors;
    this.#addWith = addWith;
  }

  add<D extends ServiceDefinition>(definition: D, handlers: Partial<Handlers<D>>): this {
    this.#addWith(this.#interceptors, definition, handlers);
    return this;
  }

  scope(...interceptors: Interceptor[]): ServiceScope {
    const inner = [...this.#interceptors, ...checkedInterceptors('scope', interceptors)];
    return new ScopedServices(inner, this.#addWith);
  }
}
