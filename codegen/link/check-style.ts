/**
 * Checks names against the style that edition 2024 requires, unless `enforce_naming_style` disables it.
 * check.ts calls it for every element that has a name.
 */
import { type FeatureScope, namingLegacy } from './features.ts';

const title = { form: /^[A-Z][A-Za-z0-9]*$/, name: 'TitleCase' };
const lower = { form: /^[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*$/, name: 'lower_snake_case' };
const upper = { form: /^[A-Z][A-Z0-9]*(?:_[A-Z][A-Z0-9]*)*$/, name: 'UPPER_SNAKE_CASE' };

const styles = {
  package: lower,
  message: title,
  field: lower,
  extension: lower,
  oneof: lower,
  enum: title,
  value: upper,
  service: title,
  method: title,
} as const;

export type Styled = keyof typeof styles;

/**
 * Returns the reason why the name is invalid, or undefined when it is valid. `features` are the features of
 * the named element.
 */
export function styleFault(what: Styled, name: string, features: FeatureScope): string | undefined {
  const { form, name: style } = styles[what];
  // Checks each part of a package.
  if (name.split('.').every((part) => form.test(part)) || features.get('naming') === namingLegacy)
    return undefined;
  return `the name of ${what} ${name} is not in ${style}, which this edition asks for; features.enforce_naming_style = STYLE_LEGACY turns that off`;
}
