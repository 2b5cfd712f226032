# Runs blocks of R for oi-tui. Evaluated in an environment that holds `folder`, by an interactive R.
#
# In `folder` lie two FIFOs. From `commands` come lines "run <file>"; to `events` go "ready <version>", "line <n>",
# "image png <file>" and "end <status>". What the code prints goes to the terminal and nowhere else. Blocks are evaluated
# in the global environment, one top-level expression after the other, each shown as at a prompt.
#
# Plots are drawn on a hidden device with a display list. A page is copied to a PNG file when the next one begins and at
# the end of a block; the page stays open, so a later block can add to it.

events <- fifo(file.path(folder, "events"), "w", blocking = TRUE)
commands <- fifo(file.path(folder, "commands"), "r", blocking = TRUE)

tell <- function(...) {
  cat(..., "\n", file = events, sep = "")
  flush(events)
}

# Plots ----------------------------------------------------------------------------------------------------------

WIDTH <- 900
HEIGHT <- 600
RESOLUTION <- 110
screen <- NULL # number of the hidden device
shown <- NULL # what was drawn on the page when it was last copied
pictures <- 0

draw_on <- function(path) {
  grDevices::png(path, width = WIDTH, height = HEIGHT, res = RESOLUTION)
}

open_screen <- function(...) {
  draw_on(file.path(folder, "screen-%03d.png"))
  grDevices::dev.control("enable")
  screen <<- grDevices::dev.cur()
  shown <<- NULL
}

is_open <- function() !is.null(screen) && screen %in% grDevices::dev.list()

# What of a display list can be seen: `par()` alone does not make a new picture.
unseen <- c("C_clip", "C_layout", "C_par", "C_plot_window", "C_strHeight", "C_strWidth", "C_palette", "C_palette2")
drawn <- function(calls) {
  Filter(function(call) !identical(tryCatch(call[[2]][[1]]$name %in% unseen, error = function(e) FALSE), TRUE), calls)
}

copy_page <- function() {
  if (!is_open()) return(invisible())
  current <- grDevices::dev.cur()
  grDevices::dev.set(screen)
  on.exit(if (current %in% grDevices::dev.list()) grDevices::dev.set(current))
  page <- tryCatch(grDevices::recordPlot(), error = function(e) NULL)
  now <- drawn(page[[1]])
  if (length(now) == 0 || identical(now, shown)) return(invisible())
  shown <<- now
  pictures <<- pictures + 1
  name <- sprintf("picture-%d.png", pictures)
  draw_on(file.path(folder, name))
  tryCatch(grDevices::replayPlot(page), error = function(e) NULL, finally = grDevices::dev.off())
  tell("image png ", name)
}

before_page <- function(...) if (is_open() && grDevices::dev.cur() == screen) copy_page()
setHook("before.plot.new", function(...) if (graphics::par("page")) before_page(), "append")
setHook("before.grid.newpage", before_page, "append")

# Evaluation -----------------------------------------------------------------------------------------------------

leave <- function(status) {
  structure(class = c("oi_tui_leave", "condition"), list(message = "", call = NULL, status = status))
}

show_value <- function(value) {
  if (isS4(value)) methods::show(value) else print(value)
}

describe <- function(kind, problem, name, line) {
  call <- conditionCall(problem)
  own <- is.null(call) || any(grepl("^(eval|withVisible|show_value)\\(", deparse(call)[1]))
  where <- if (own) paste0(kind, ": ") else paste0(kind, " in ", deparse(call, nlines = 1)[1], " : ")
  cat(where, conditionMessage(problem), "\n", if (kind == "Error") paste0("  at ", name, ":", line, "\n"),
    sep = "", file = stderr()
  )
}

evaluate <- function(file) {
  name <- basename(file)
  text <- readLines(file, warn = FALSE, encoding = "UTF-8")
  code <- tryCatch(
    parse(text = text, keep.source = TRUE, srcfile = srcfilecopy(name, text, isFile = FALSE)),
    error = function(problem) {
      cat("Error: ", conditionMessage(problem), "\n", sep = "", file = stderr())
      NULL
    }
  )
  if (is.null(code)) return(1L)
  lines <- vapply(attr(code, "srcref"), function(ref) as.integer(ref)[1], 1L)
  line <- 0L
  status <- tryCatch(
    {
      for (at in seq_along(code)) {
        if (lines[at] != line) tell("line ", lines[at])
        line <- lines[at]
        withCallingHandlers(
          {
            result <- withVisible(eval(code[[at]], globalenv()))
            if (result$visible) show_value(result$value)
          },
          warning = function(problem) {
            if (!getOption("warn") %in% 0:1) return()
            describe("Warning", problem, name, line)
            invokeRestart("muffleWarning")
          }
        )
      }
      0L
    },
    oi_tui_leave = function(left) left$status,
    interrupt = function(stop) 130L,
    error = function(problem) {
      describe("Error", problem, name, line)
      1L
    }
  )
  while (sink.number() > 0) sink() # a forgotten one would swallow the next block's output
  tryCatch(copy_page(), error = function(problem) NULL)
  status
}

# Found before R's own: leaving a script does not mean leaving the conversation, closing a device not losing its plot.
own <- list()
own$q <- own$quit <- function(save = "default", status = 0, runLast = TRUE) stop(leave(as.integer(status)))
own$dev.off <- function(which = grDevices::dev.cur()) {
  if (identical(as.integer(which), as.integer(screen))) copy_page()
  grDevices::dev.off(which)
}
own$graphics.off <- function() {
  copy_page()
  grDevices::graphics.off()
}
attach(own, name = "oi_tui", warn.conflicts = FALSE)

options(
  device = open_screen,
  width = 100,
  help_type = "text",
  menu.graphics = FALSE,
  browser = function(url) cat("Open in a browser:", url, "\n"),
  viewer = function(url, ...) cat("Open in a browser:", url, "\n")
)
if ("@CRAN@" %in% getOption("repos")) options(repos = c(CRAN = "https://cloud.r-project.org"))

tell("ready ", paste(R.version$major, R.version$minor, sep = "."))
repeat {
  tryCatch(
    {
      line <- readLines(commands, 1)
      if (length(line) == 1 && startsWith(line, "run ")) tell("end ", evaluate(substring(line, 5)))
    },
    interrupt = function(stop) NULL # it came when the code had just ended
  )
}
