/**
 * The service configuration of a channel. It is given as an object, read from a file, or taken from the
 * attributes of the resolver's addresses. After a wrong configuration, the channel logs a warning that names
 * the field, and keeps the last valid configuration. Owned by a channel. Clients read it when they make a
 * call and its version has changed.
 */
import { textOf } from '../../core/foreign.ts';
import type { Warn } from '../../core/warnings.ts';
import type { RetryBudget } from '../connections/retry-budget.ts';
import type { Server } from '../connections/servers.ts';
import { ConfigFile } from './config-file.ts';
import type { BalancingConfig } from './load-balancing-config.ts';
import { type CheckedServiceConfig, checkedServiceConfig, type ServiceConfig } from './service-config.ts';

/** The name of the attribute in which an address has a service configuration as a JSON text. */
const attribute = 'serviceConfig';

/** The object that chooses among the connections of a channel. */
interface Balanced {
  balance(settings: BalancingConfig): void;
}

export class ChannelConfig {
  /** Increases with each new configuration. */
  version = 0;
  current: CheckedServiceConfig | undefined;
  #onChange: (config: CheckedServiceConfig) => void = () => undefined;
  readonly #warn: Warn;
  /** True when the application has given a configuration, so that the resolver's configuration is ignored. */
  readonly #given: boolean;
  readonly #file: ConfigFile | undefined;
  /** The last text, valid or not, so that each text is checked and warned of only once. */
  #text: string | undefined;

  /**
   * `given` is a configuration, or the path of a file. Throws for a wrong configuration, or a file that
   * cannot be read.
   */
  constructor(given: ServiceConfig | string | undefined, warn: Warn) {
    this.#warn = warn;
    this.#given = given !== undefined;
    if (typeof given === 'string') {
      const onText = (text: string): void => this.#take(`the file ${given}`, text);
      this.#file = new ConfigFile(given, onText, (fault) => this.#refuse(`the file ${given}`, fault));
      if (this.current === undefined) {
        this.close();
        // A later change reports the same error as a warning; here the caller gets it.
        checkedServiceConfig(JSON.parse(this.#text!));
      }
    } else if (given !== undefined) this.#set(checkedServiceConfig(given));
  }

  /**
   * Applies the settings of the whole channel, now and after each change. `balanced` is undefined when the
   * application has chosen the policy.
   */
  apply(balanced: Balanced | undefined, { budget }: { readonly budget: RetryBudget }): void {
    this.#onChange = ({ balancing, throttling }) => {
      if (balancing !== undefined) balanced?.balance(balancing);
      if (throttling !== undefined) budget.resize(throttling.tokens, throttling.perSuccess);
    };
    if (this.current !== undefined) this.#onChange(this.current);
  }

  /** Takes the configuration of the first address that has one. */
  onServers(servers: readonly Server[]): void {
    if (this.#given) return;
    const having = servers.find(({ attributes }) => attributes?.[attribute] !== undefined);
    if (having !== undefined) this.#take(`the resolver's ${having.address}`, having.attributes![attribute]!);
  }

  close(): void {
    this.#file?.close();
  }

  #take(where: string, text: string): void {
    if (text === this.#text) return;
    this.#text = text;
    try {
      this.#set(checkedServiceConfig(JSON.parse(text)));
    } catch (fault) {
      this.#refuse(where, fault);
    }
  }

  #refuse(where: string, fault: unknown): void {
    if (this.current === undefined && this.#given) return;
    this.#warn(`service configuration of ${where} is not used, the last good one stays: ${textOf(fault)}`);
  }

  #set(config: CheckedServiceConfig): void {
    this.current = config;
    ++this.version;
    this.#onChange(config);
  }
}

/**
 * Returns the configuration of a channel, or undefined when the channel has no configuration and its resolver
 * cannot provide one.
 */
export function configOf(
  { resolver }: { readonly resolver?: unknown },
  { serviceConfig }: { readonly serviceConfig?: ServiceConfig | string },
  warn: Warn,
): ChannelConfig | undefined {
  if (serviceConfig === undefined && resolver === undefined) return undefined;
  return new ChannelConfig(serviceConfig, warn);
}
