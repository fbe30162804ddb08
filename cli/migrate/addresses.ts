/** Addresses as the libraries of gRPC write them. Used by the rules of each library. */
import { Node } from 'ts-morph';

/**
 * What stands for an address in a call of this package, or why it cannot. `text`: of the argument, rendered.
 * An argument that is no literal is taken as it is.
 */
export function addressOf(argument: Node, text: string): { text: string } | { why: string } {
  if (!Node.isStringLiteral(argument) && !Node.isNoSubstitutionTemplateLiteral(argument)) {
    const template = Node.isTemplateExpression(argument) ? argument.getHead().getLiteralText() : '';
    if (/^https:/.test(template)) return { why: secured };
    return { text: /^http:\/\//.test(template) ? text.replace('http://', '') : text };
  }
  const address = argument.getLiteralText();
  if (/^https:/.test(address)) return { why: secured };
  const plain = address.replace(/^http:\/\//, '').replace(/\/$/, '');
  if (/^(ipv4|ipv6|xds):/.test(plain))
    return { why: `the address ${address} has a scheme that is not known here` };
  if (!/^(unix:|dns:)/.test(plain) && !/:\d+$/.test(plain))
    return { why: `the address ${address} has no port` };
  return { text: JSON.stringify(plain).replaceAll('"', "'") };
}

const secured = 'TLS: give createChannel the option tls';
