-- What pandoc does not do by itself with our Markdown: formulas of ```math fences with their
-- numbers, and the directives of tests/weave/weave.py as lines that say where a block comes from.

-- ```math (site.py calls it formula) becomes a displayed formula; \tag{n} becomes its number and the anchor equation-n.
function CodeBlock(block)
  if block.classes[1] ~= "formula" then return nil end
  local tag = block.text:match("\\tag{(%w+)}")
  local formula = pandoc.Para({pandoc.Math("DisplayMath", (block.text:gsub("\\tag{%w+}", "")))})
  if not tag then return pandoc.Div({formula}, {class = "equation"}) end
  local number = pandoc.Para({pandoc.Str("(" .. tag .. ")")})
  return pandoc.Div({formula, number}, {class = "equation", id = "equation-" .. tag})
end

-- A path relative to the page's folder, which site.py passes on as the variable `up`.
local up = ""
function Meta(meta)
  up = meta.up and pandoc.utils.stringify(meta.up) or ""
end

function RawBlock(block)
  local kind, argument = block.text:match("^<!%-%- (%l+): (.-) %-%->%s*$")
  if kind == "code" then
    local path, region = argument:match("^([^#]+)#?(.*)$")
    local link = pandoc.Link({pandoc.Str(path)}, up .. path)
    local where = region ~= "" and {pandoc.Space(), pandoc.Str("[" .. region .. "]")} or {}
    return pandoc.Div({pandoc.Plain({link, table.unpack(where)})}, {class = "from"})
  elseif kind == "output" then
    return pandoc.Div({pandoc.Plain({pandoc.Code(argument)})}, {class = "from command"})
  elseif block.text:match("^<!%-%-.*%-%->%s*$") then
    return {}
  end
end

function RawInline(inline)
  if inline.text:match("^<!%-%-.*%-%->$") then return {} end
end

return {{Meta = Meta}, {CodeBlock = CodeBlock, RawBlock = RawBlock, RawInline = RawInline}}
