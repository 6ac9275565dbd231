import { uuidv7 } from 'uuidv7'

/**
 * The bizId of a command, made when its form opens: however often the form is submitted, and whatever answer is lost, the command
 * is done once.
 */
export function newBizId(): string {
  return `console-${uuidv7()}`
}
