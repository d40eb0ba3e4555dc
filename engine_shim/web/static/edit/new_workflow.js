// What a new workflow begins as.

/** The text of a workflow with one agent. */
export const NEW_WORKFLOW = `id: new_workflow
version: "1"
description: ""
inputs:
  type: object
  properties:
    message: {type: string}
  required: [message]
nodes:
  - id: agent
    tool: agent_core
    config:
      model: ""
      max_steps: 8
      allowed_tools: []
      prompt: "{{external.message}}"
outputs:
  answer: "{{nodes.agent.final_answer}}"
`;
